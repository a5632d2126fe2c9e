/** Points of a map: their colours, and drawing by WebGL2 or on a plain canvas. */

import { NEUTRAL, colourRamp, colourScale } from "./theme.js";

/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {import("./results.js").Ranking} Ranking */
/** @typedef {import("./theme.js").Theme} Theme */

/** Share of the animation over which points begin, the first ranks first. */
const STAGGER = 0.72;

/** Opacity of a point without a rank: many lie over each other. @param {number} count */
function neutralOpacity(count) {
  return Math.min(0.62, Math.max(0.16, 24 / Math.sqrt(count || 1)));
}

const VERTEX = `#version 300 es
in vec2 position; in vec4 before; in vec4 after; in float delay;
uniform vec2 centre; uniform vec2 scale; uniform float size; uniform float time; uniform float faint;
out vec4 colour; out float diameter; out float strength;
void main() {
  float part = smoothstep(delay * ${STAGGER}, delay * ${STAGGER} + ${(1 - STAGGER).toFixed(2)}, time);
  colour = mix(before, after, part);
  float swell = 1.0 + 0.7 * step(0.001, part) * (1.0 - part) * step(0.0001, delay);
  diameter = size * mix(0.8, 1.0, colour.a) * swell;
  strength = mix(faint, 1.0, colour.a);
  gl_PointSize = diameter + 2.0;
  gl_Position = vec4((position - centre) * scale, 0.0, 1.0);
}`;

const FRAGMENT = `#version 300 es
precision mediump float;
in vec4 colour; in float diameter; in float strength; out vec4 pixel;
void main() {
  float away = length(gl_PointCoord - 0.5) * (diameter + 2.0);
  float cover = clamp(0.5 * diameter - away + 0.5, 0.0, 1.0);
  float opacity = cover * strength;
  pixel = vec4(colour.rgb * opacity, opacity);
}`;

/** @typedef {{before: Uint8Array, after: Uint8Array, delay: Float32Array, order: Uint32Array}} Transition */

export class WebglRenderer {
  /** @param {HTMLCanvasElement} canvas @returns {WebglRenderer|null} null without WebGL2 */
  static make(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: false, premultipliedAlpha: true, alpha: true });
    return gl && !gl.isContextLost() ? new WebglRenderer(canvas, gl) : null;
  }

  /** @param {HTMLCanvasElement} canvas @param {WebGL2RenderingContext} gl */
  constructor(canvas, gl) {
    this.canvas = canvas;
    this.gl = gl;
    this.count = 0;
    /** @type {Float32Array|null} */
    this.xy = null;
    /** @type {Transition|null} */
    this.transition = null;
    /** @type {Record<string, WebGLUniformLocation|null>} */
    this.uniform = {};
    /** @type {Record<string, WebGLBuffer|null>} */
    this.buffers = {};
    /** @type {() => void} */
    this.onRestored = () => {};
    this.prepare();
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.prepare();
      if (this.xy) this.setPositions(this.xy);
      if (this.transition) this.setTransition(this.transition);
      this.onRestored();
    });
  }

  prepare() {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [kind, source] of /** @type {const} */ ([
      [gl.VERTEX_SHADER, VERTEX],
      [gl.FRAGMENT_SHADER, FRAGMENT],
    ])) {
      const shader = /** @type {WebGLShader} */ (gl.createShader(kind));
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    this.uniform = Object.fromEntries(
      ["centre", "scale", "size", "time", "faint"].map((name) => [
        name,
        gl.getUniformLocation(program, name),
      ]),
    );
    gl.bindVertexArray(gl.createVertexArray());
    this.buffers = Object.fromEntries(
      ["position", "before", "after", "delay"].map((name) => {
        const buffer = gl.createBuffer(),
          at = gl.getAttribLocation(program, name);
        const bytes = name === "before" || name === "after";
        gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
        gl.enableVertexAttribArray(at);
        gl.vertexAttribPointer(
          at,
          bytes ? 4 : name === "position" ? 2 : 1,
          bytes ? gl.UNSIGNED_BYTE : gl.FLOAT,
          bytes,
          0,
          0,
        );
        return [name, buffer];
      }),
    );
    this.order = gl.createBuffer();
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.order);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  /** @param {Float32Array} xy */
  setPositions(xy) {
    this.xy = xy;
    this.count = 0; // nothing is drawn until it is painted
    this.fill("position", xy);
  }

  /** @param {Transition} transition */
  setTransition(transition) {
    this.transition = transition;
    this.fill("before", transition.before);
    this.fill("after", transition.after);
    this.fill("delay", transition.delay);
    this.gl.bufferData(this.gl.ELEMENT_ARRAY_BUFFER, transition.order, this.gl.DYNAMIC_DRAW);
    this.count = transition.order.length;
  }

  /** @param {string} name @param {Float32Array|Uint8Array} data */
  fill(name, data) {
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, this.buffers[name]);
    this.gl.bufferData(this.gl.ARRAY_BUFFER, data, this.gl.DYNAMIC_DRAW);
  }

  /** @param {import("./viewport.js").Viewport} view @param {number} size @param {number} time 0 to 1 @param {number} ratio */
  draw(view, size, time, ratio) {
    const { gl, canvas, uniform } = this;
    if (gl.isContextLost()) return;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (!this.count) return;
    gl.uniform2f(uniform.centre, view.x, view.y);
    gl.uniform2f(uniform.scale, (2 * view.scale) / view.width, (2 * view.scale) / view.height);
    gl.uniform1f(uniform.size, size * ratio);
    gl.uniform1f(uniform.time, time);
    gl.uniform1f(uniform.faint, neutralOpacity(this.count));
    gl.drawElements(gl.POINTS, this.count, gl.UNSIGNED_INT, 0);
  }
}

export class CanvasRenderer {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    /** @type {Float32Array|null} */
    this.xy = null;
    /** @type {Transition|null} */
    this.transition = null;
    /** @type {() => void} */
    this.onRestored = () => {};
  }

  /** @param {Float32Array} xy */
  setPositions(xy) {
    this.xy = xy;
    this.transition = null;
  }

  /** @param {Transition} transition */
  setTransition(transition) {
    this.transition = transition;
  }

  /** @param {import("./viewport.js").Viewport} view @param {number} size @param {number} time @param {number} ratio */
  draw(view, size, time, ratio) {
    const { context, canvas, xy, transition } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    if (!xy || !transition) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const colours = blend(transition, time);
    const opacity = neutralOpacity(transition.order.length);
    const round = transition.order.length <= 20000;
    for (const row of transition.order) {
      const [px, py] = view.toPixel(xy[2 * row], xy[2 * row + 1]);
      if (px < -size || py < -size || px > view.width + size || py > view.height + size) continue;
      const strength = colours[4 * row + 3] / 255;
      const radius = 0.5 * size * (0.8 + 0.2 * strength);
      context.fillStyle = `rgb(${colours[4 * row]} ${colours[4 * row + 1]} ${colours[4 * row + 2]} / ${opacity + (1 - opacity) * strength})`;
      if (round) {
        context.beginPath();
        context.arc(px, py, radius, 0, 2 * Math.PI);
        context.fill();
      } else context.fillRect(px - radius, py - radius, 2 * radius, 2 * radius);
    }
  }
}

/**
 * Colours by rank; what has no rank within the depth, or no score by shape, stays neutral.
 * @param {Layout} layout
 * @param {Ranking|null} ranking
 * @param {number} depth
 * @param {Theme} theme
 * @param {boolean} shape whether scores at or below 0 mean that the query does not reach a point
 * @returns {{colours: Uint8Array, delay: Float32Array, order: Uint32Array}}
 */
export function rankColours(layout, ranking, depth, theme, shape) {
  const count = layout.ids.length;
  const colours = neutralColours(count, theme);
  const delay = new Float32Array(count).fill(1);
  if (!ranking) return { colours, delay, order: Uint32Array.from({ length: count }, (_, i) => i) };
  const steps = colourRamp(theme);
  /** @type {number[]} */
  const ranked = [];
  ranking.ids.forEach((id, index) => {
    const row = layout.rows.get(id);
    if (row === undefined || (shape && /** @type {number} */ (ranking.scores.get(id)) <= 0)) return;
    const part = index / Math.max(1, depth - 1);
    const rgb = steps[Math.min(255, Math.round(255 * part))];
    colours.set([rgb[0], rgb[1], rgb[2], 255], 4 * row);
    delay[row] = part;
    ranked.push(row);
  });
  return { colours, delay, order: drawOrder(count, ranked) };
}

/**
 * Colours by the values of a column; all points are as strong.
 * @param {Layout} layout
 * @param {unknown[]} values
 * @param {Theme} theme
 */
export function columnColours(layout, values, theme) {
  const count = layout.ids.length;
  const colours = neutralColours(count, theme);
  const { colourOf, legend } = colourScale(values, theme);
  for (let row = 0; row < count; row++) {
    const rgb = colourOf(values[row]);
    colours.set([rgb[0], rgb[1], rgb[2], 255], 4 * row);
  }
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  return { colours, delay: new Float32Array(count), order, legend };
}

/** @param {number} count @param {Theme} theme */
function neutralColours(count, theme) {
  const colours = new Uint8Array(4 * count);
  const [red, green, blue] = NEUTRAL[theme];
  for (let at = 0; at < colours.length; at += 4) {
    colours[at] = red;
    colours[at + 1] = green;
    colours[at + 2] = blue;
  }
  return colours;
}

/** Rows from the lowest to the topmost: those of the ranking last, the best at the very end. */
function drawOrder(/** @type {number} */ count, /** @type {number[]} */ ranked) {
  const raised = new Uint8Array(count);
  for (const row of ranked) raised[row] = 1;
  const order = new Uint32Array(count);
  let at = 0;
  for (let row = 0; row < count; row++) if (!raised[row]) order[at++] = row;
  for (let index = ranked.length - 1; index >= 0; index--) order[at++] = ranked[index];
  return order;
}

/**
 * The colours in the course of a change, as the shader mixes them.
 * @param {Transition} transition
 * @param {number} time 0 to 1
 * @returns {Uint8Array}
 */
export function blend(transition, time) {
  const { before, after, delay } = transition;
  if (time >= 1) return after;
  const colours = new Uint8Array(after.length);
  for (let row = 0; row < delay.length; row++) {
    const x = Math.min(1, Math.max(0, (time - delay[row] * STAGGER) / (1 - STAGGER)));
    const part = x * x * (3 - 2 * x);
    for (let at = 4 * row; at < 4 * row + 4; at++) colours[at] = before[at] + (after[at] - before[at]) * part;
  }
  return colours;
}
