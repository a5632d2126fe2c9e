"""Whether text can be read: contrast as WCAG 2 defines it, level AA."""

UNREADABLE = """() => {
    const numbers = text => (text.match(/-?[\\d.]+(e-?\\d+)?/g) ?? []).map(Number);
    const rgba = text => {
        const given = numbers(text.replace(/^color\\(srgb/, ''));
        const bytes = text.startsWith('color(') ? given.map((v, i) => i < 3 ? 255 * v : v) : given;
        return [bytes[0], bytes[1], bytes[2], bytes[3] ?? 1];
    };
    const over = (above, below) =>
        [0, 1, 2].map(i => above[3] * above[i] + (1 - above[3]) * below[i]);
    const luminance = rgb => {
        const bent = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        const linear = rgb.map(v => bent(v / 255));
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    };
    const ground = element => {
        const layers = [];
        for (let at = element; at; at = at.parentElement) {
            layers.push(rgba(getComputedStyle(at).backgroundColor));
            if (layers.at(-1)[3] === 1) break;
        }
        return layers.reduceRight((below, above) => over(above, below), [255, 255, 255]);
    };
    const opacity = element => {
        let all = 1;
        for (let at = element; at; at = at.parentElement) all *= getComputedStyle(at).opacity;
        return all;
    };
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement, text = walker.currentNode.data.trim();
        if (!text || element.closest('script, style, option, .hidden, :disabled')) continue;
        if (!element.checkVisibility({ visibilityProperty: true })) continue;
        const style = getComputedStyle(element), below = ground(element);
        const colour = rgba(style.color);
        colour[3] *= opacity(element);
        const [a, b] = [luminance(over(colour, below)), luminance(below)];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        const size = parseFloat(style.fontSize), bold = Number(style.fontWeight) >= 700;
        const needed = size >= 24 || (bold && size >= 18.66) ? 3 : 4.5;
        if (ratio < needed) found.push({ text, ratio, colour: style.color, ground: below, size });
    }
    return found;
}"""
