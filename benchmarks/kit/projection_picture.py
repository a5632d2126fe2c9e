"""Two panels over the number of points: what an index takes, and what making it takes."""

from kit.pictures import GREEN, GREY, RIGHT, WRONG, label_ends, plot
from kit.projecting import GB, core_hours, on_disk


def short(value):
    """Return a number as it is spoken."""
    if value >= 1e6:
        return f"{value / 1e6:,.2g} million"
    return f"{float(f'{value:.2g}'):,.0f}"


def draw_room(axes, sizes, constants, widths, assumed):
    """Draw disk and memory; return labels for the ends of the lines."""
    lines = []
    for n_features, color in zip(widths, (RIGHT, WRONG), strict=True):
        disk = on_disk(constants, n_features, "HNSW")
        lines.append((f"disk, d = {n_features}", "-", color, disk))
        hnsw = constants.bytes("search", n_features)
        lines.append((f"HNSW, d = {n_features}", "--", color, hnsw))
    held = assumed["held_lists"] * constants.bytes("lists", widths[0])
    lines.append((f"{assumed['held_lists']:.0%} of the lists", ":", GREEN, held))
    axes.axhline(assumed["memory_gb"], color=GREY, linewidth=0.8)
    axes.annotate("one machine", (sizes[0], assumed["memory_gb"]), (4, 4),
                  textcoords="offset points", color=GREY, fontsize=9)  # fmt: skip
    return draw_lines(axes, sizes, [
        (f"{name}: {short(sizes[-1] * size / GB)} GB", style, color, [n * size / GB for n in sizes])
        for name, style, color, size in lines
    ])  # fmt: skip


def draw_work(axes, sizes, constants, n_features):
    """Draw core-hours; return labels for the ends of the lines."""
    spent = [core_hours(constants, n, n_features) for n in sizes]
    looks = zip((":", "-", "--", "-", "-"), (RIGHT, RIGHT, RIGHT, WRONG, GREY), strict=True)
    return draw_lines(axes, sizes, [
        (f"{way}: {short(spent[-1][way])}", *look, [hours[way] for hours in spent])
        for way, look in zip(spent[0], looks, strict=True)
    ])  # fmt: skip


def draw_lines(axes, sizes, lines):
    for _, style, color, values in lines:
        axes.plot(sizes, values, style, color=color, linewidth=1.8)
    return [(values[-1], name, color) for name, _, color, values in lines]


def picture(constants, widths, assumed):
    """Return the figure: room on the left, work on the right."""
    sizes = [10**power for power in (6, 7, 8, 9)]
    figure, (room, work) = plot(
        "From a million points to a billion",
        "Worked out from constants that were measured on small databases. Left: disk (lines) and "
        f"memory (broken lines).\nRight: making lists and indexes, d = {widths[0]}. "
        "d is the number of features, numbers stand for a billion points.",
        n_panels=2,
        size=(13.0, 5.4),
    )
    ends = (
        draw_room(room, sizes, constants, widths, assumed),
        draw_work(work, sizes, constants, widths[0]),
    )
    for axes, labels, what in zip((room, work), ends, ("GB", "core-hours"), strict=True):
        axes.set(xscale="log", yscale="log", xlabel="points", ylabel=what)
        axes.set_xlim(sizes[0], sizes[-1])
        axes.minorticks_off()
        label_ends(axes, sizes[-1], labels)
    figure.subplots_adjust(left=0.055, right=0.82, wspace=0.72, top=0.77)
    return figure
