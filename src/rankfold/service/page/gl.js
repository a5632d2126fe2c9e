/** Points drawn by WebGL2: colours go from one to the next, each point in its own time. */

/** Share of the animation over which points begin, the first ranks first. */
export const SPREAD = 0.72;

/** Opacity of a point without a rank: many lie over each other. @param {number} count */
export function faintness(count) {
  return Math.min(0.62, Math.max(0.16, 24 / Math.sqrt(count || 1)));
}

const VERTEX = `#version 300 es
in vec2 place; in vec4 before; in vec4 after; in float delay;
uniform vec2 centre; uniform vec2 scale; uniform float size; uniform float time; uniform float faint;
out vec4 colour; out float diameter; out float strength;
void main() {
  float part = smoothstep(delay * ${SPREAD}, delay * ${SPREAD} + ${(1 - SPREAD).toFixed(2)}, time);
  colour = mix(before, after, part);
  float swell = 1.0 + 0.7 * step(0.001, part) * (1.0 - part) * step(0.0001, delay);
  diameter = size * mix(0.8, 1.0, colour.a) * swell;
  strength = mix(faint, 1.0, colour.a);
  gl_PointSize = diameter + 2.0;
  gl_Position = vec4((place - centre) * scale, 0.0, 1.0);
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

/** @typedef {{before: Uint8Array, after: Uint8Array, delay: Float32Array, order: Uint32Array}} Paint */

export class GlPoints {
  /** @param {HTMLCanvasElement} canvas @returns {GlPoints|null} null without WebGL2 */
  static make(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: false, premultipliedAlpha: true, alpha: true });
    return gl && !gl.isContextLost() ? new GlPoints(canvas, gl) : null;
  }

  /** @param {HTMLCanvasElement} canvas @param {WebGL2RenderingContext} gl */
  constructor(canvas, gl) {
    this.canvas = canvas;
    this.gl = gl;
    this.count = 0;
    /** @type {Float32Array|null} */
    this.xy = null;
    /** @type {Paint|null} */
    this.paint = null;
    /** @type {() => void} */
    this.onRestored = () => {};
    this.prepare();
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.prepare();
      if (this.xy) this.setPlaces(this.xy);
      if (this.paint) this.setPaint(this.paint);
      this.onRestored();
    });
  }

  prepare() {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [kind, source] of /** @type {const} */ ([[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]])) {
      const shader = /** @type {WebGLShader} */ (gl.createShader(kind));
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    this.uniform = Object.fromEntries(
      ["centre", "scale", "size", "time", "faint"].map((name) => [name, gl.getUniformLocation(program, name)]));
    gl.bindVertexArray(gl.createVertexArray());
    this.buffers = Object.fromEntries(["place", "before", "after", "delay"].map((name) => {
      const buffer = gl.createBuffer(), at = gl.getAttribLocation(program, name);
      const bytes = name === "before" || name === "after";
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, bytes ? 4 : name === "place" ? 2 : 1, bytes ? gl.UNSIGNED_BYTE : gl.FLOAT, bytes, 0, 0);
      return [name, buffer];
    }));
    this.order = gl.createBuffer();
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.order);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  /** @param {Float32Array} xy */
  setPlaces(xy) {
    this.xy = xy;
    this.count = 0; // nothing is drawn until it is painted
    this.fill("place", xy);
  }

  /** @param {Paint} paint */
  setPaint(paint) {
    this.paint = paint;
    this.fill("before", paint.before);
    this.fill("after", paint.after);
    this.fill("delay", paint.delay);
    this.gl.bufferData(this.gl.ELEMENT_ARRAY_BUFFER, paint.order, this.gl.DYNAMIC_DRAW);
    this.count = paint.order.length;
  }

  /** @param {string} name @param {Float32Array|Uint8Array} data */
  fill(name, data) {
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, this.buffers[name]);
    this.gl.bufferData(this.gl.ARRAY_BUFFER, data, this.gl.DYNAMIC_DRAW);
  }

  /** @param {import("./view.js").View} view @param {number} size @param {number} time 0 to 1 @param {number} ratio */
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
    gl.uniform1f(uniform.faint, faintness(this.count));
    gl.drawElements(gl.POINTS, this.count, gl.UNSIGNED_INT, 0);
  }
}
