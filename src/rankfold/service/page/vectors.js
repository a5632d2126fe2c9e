/** Vectors from texts, files and pictures. */

import { byId } from "./elements.js";

/** @typedef {import("./api.js").Info} Info */

const MAX_BYTES = 8 * 2 ** 20;
const MAX_VECTORS = 20;

/** Says what is wrong with what was given, for the user to read. */
export class VectorError extends Error {}

/**
 * Numbers of an .npy file: one vector, or several rows.
 * @param {ArrayBuffer} buffer
 * @returns {number[][]}
 */
export function parseNpy(buffer) {
  const bytes = new Uint8Array(buffer);
  if (bytes.length < 12 || String.fromCharCode(...bytes.slice(1, 6)) !== "NUMPY") {
    throw new VectorError("This is not an .npy file.");
  }
  const view = new DataView(buffer);
  const long = bytes[6] >= 2;
  const length = long ? view.getUint32(8, true) : view.getUint16(8, true);
  const begin = (long ? 12 : 10) + length;
  const header = new TextDecoder("latin1").decode(bytes.slice(long ? 12 : 10, begin));
  const kind = /'descr':\s*'([<>|=])([a-z])(\d+)'/.exec(header);
  const shape = /'shape':\s*\(([^)]*)\)/.exec(header);
  if (!kind || !shape) throw new VectorError("The file holds no plain array of numbers.");
  const read = numberReader(view, kind[2] + kind[3], kind[1] !== ">");
  if (!read)
    throw new VectorError(`The file holds numbers of kind ${kind[2]}${kind[3]}; save them as float32.`);
  const sizes = shape[1]
    .split(",")
    .filter((part) => part.trim())
    .map(Number);
  if (sizes.length < 1 || sizes.length > 2) {
    throw new VectorError(`The array has ${sizes.length} dimensions; give one vector or rows of vectors.`);
  }
  const [rows, columns] = sizes.length === 1 ? [1, sizes[0]] : sizes;
  const size = Number(kind[3]);
  if (begin + rows * columns * size > bytes.length) throw new VectorError("The file ends too early.");
  const fortran = /'fortran_order':\s*True/.test(header);
  return Array.from({ length: rows }, (_, r) =>
    Array.from({ length: columns }, (_, c) =>
      read(begin + size * (fortran ? c * rows + r : r * columns + c)),
    ),
  );
}

/**
 * @param {DataView} view
 * @param {string} kind such as "f4"
 * @param {boolean} little
 * @returns {((at: number) => number)|null}
 */
function numberReader(view, kind, little) {
  switch (kind) {
    case "f4":
      return (at) => view.getFloat32(at, little);
    case "f8":
      return (at) => view.getFloat64(at, little);
    case "i4":
      return (at) => view.getInt32(at, little);
    case "i8":
      return (at) => Number(view.getBigInt64(at, little));
    case "i2":
      return (at) => view.getInt16(at, little);
    case "u2":
      return (at) => view.getUint16(at, little);
    case "u1":
      return (at) => view.getUint8(at);
    case "i1":
      return (at) => view.getInt8(at);
    default:
      return null;
  }
}

/**
 * Numbers of a text: JSON (a list, or a list of lists), or numbers with commas, semicolons or
 * spaces between them, a vector a line.
 * @param {string} text
 * @param {number} features
 * @returns {number[][]}
 */
export function parseText(text, features) {
  const trimmed = text.trim();
  if (!trimmed) throw new VectorError("There are no numbers here.");
  if (trimmed.startsWith("[") || trimmed.startsWith("{")) return parseJson(trimmed);
  const lines = trimmed.split(/\r?\n/).filter((line) => line.trim() && !line.trim().startsWith("#"));
  const rows = lines.map((line) =>
    line
      .trim()
      .replace(/[,;\s]+$/, "")
      .split(/\s*[,;\t]\s*|\s+/),
  );
  if (rows.length > 1 && rows[0].every((cell) => cell !== "" && Number.isNaN(Number(cell)))) rows.shift();
  const numbers = rows.map((row) => row.map(parseNumber));
  const all = numbers.flat();
  const oneVector = numbers.some((row) => row.length !== features) && all.length === features;
  return oneVector ? [all] : numbers;
}

/** @param {string} cell */
function parseNumber(cell) {
  const value = Number(cell);
  if (cell === "" || !Number.isFinite(value))
    throw new VectorError(`“${cell.slice(0, 20)}” is not a number.`);
  return value;
}

/** @param {string} text @returns {number[][]} */
function parseJson(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new VectorError("This is not valid JSON; give a list such as [0.1, 0.2].");
  }
  if (value && !Array.isArray(value)) value = value.vectors ?? value.vector;
  const rows = Array.isArray(value) && Array.isArray(value[0]) ? value : [value];
  for (const row of rows) {
    if (!Array.isArray(row) || !row.every((cell) => typeof cell === "number" && Number.isFinite(cell))) {
      throw new VectorError("The JSON must be a list of numbers, or a list of such lists.");
    }
  }
  return rows;
}

/**
 * Check that vectors fit the index.
 * @param {number[][]} vectors
 * @param {number} features
 * @param {number} [max] vectors
 */
export function checkVectors(vectors, features, max = MAX_VECTORS) {
  if (!vectors.length) throw new VectorError("There are no numbers here.");
  if (vectors.length > max)
    throw new VectorError(`${vectors.length} vectors are too many; give at most ${max}.`);
  for (const vector of vectors) {
    if (vector.length !== features) {
      throw new VectorError(`This vector has ${vector.length} numbers; the points here have ${features}.`);
    }
    if (!vector.every(Number.isFinite))
      throw new VectorError("The vector holds values that are not finite numbers.");
  }
  return vectors;
}

/**
 * Pixels of a picture as a vector.
 * @param {Uint8ClampedArray} pixels red, green, blue, opacity
 * @param {boolean} colour
 * @param {number} scale value of white
 * @returns {number[]}
 */
export function pixelsToVector(pixels, colour, scale) {
  const vector = [];
  for (let at = 0; at < pixels.length; at += 4) {
    const [red, green, blue] = [pixels[at] / 255, pixels[at + 1] / 255, pixels[at + 2] / 255];
    if (colour) vector.push(red * scale, green * scale, blue * scale);
    else vector.push((0.299 * red + 0.587 * green + 0.114 * blue) * scale);
  }
  return vector;
}

/** @param {File} file @param {Info} info @returns {Promise<number[][]>} */
export async function readVectors(file, info) {
  if (file.type.startsWith("image/")) return [await readImage(file, info)];
  if (file.size > MAX_BYTES)
    throw new VectorError(`${file.name} is larger than 8 MiB; give one vector or a few.`);
  const ending = file.name.toLowerCase().split(".").pop() ?? "";
  if (!["npy", "json", "csv", "txt", "tsv"].includes(ending)) {
    const picture = info.image ? " or a picture" : "";
    throw new VectorError(`${file.name} cannot be read; give an .npy, .json, .csv or .txt file${picture}.`);
  }
  const rows =
    ending === "npy" ? parseNpy(await file.arrayBuffer()) : parseText(await file.text(), info.features);
  return checkVectors(rows, info.features);
}

/** @param {File} file @param {Info} info @returns {Promise<number[]>} */
async function readImage(file, info) {
  const { image } = info;
  if (!image) throw new VectorError("The points of this index are not pictures; give numbers.");
  const { width, height, colour, white } = image;
  if (width * height * (colour ? 3 : 1) !== info.features) {
    throw new VectorError("The vectors of this index are not the pixels of its pictures; give numbers.");
  }
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new VectorError(`${file.name} is not a picture that can be read.`);
  }
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = /** @type {CanvasRenderingContext2D} */ (
    canvas.getContext("2d", { willReadFrequently: true })
  );
  context.imageSmoothingQuality = "high";
  const fit = Math.min(width / bitmap.width, height / bitmap.height);
  const [across, down] = [bitmap.width * fit, bitmap.height * fit];
  context.fillStyle = "#000";
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, (width - across) / 2, (height - down) / 2, across, down);
  return pixelsToVector(context.getImageData(0, 0, width, height).data, colour, white ?? 1);
}

/** @param {(file: File) => void} onFile */
export function onFileDrop(onFile) {
  const holds = (/** @type {DragEvent} */ event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  let depth = 0;
  const show = (/** @type {number} */ now) => {
    depth = Math.max(0, now);
    byId("drop").hidden = depth === 0;
  };
  window.addEventListener("dragenter", (event) => {
    if (holds(event)) {
      event.preventDefault();
      show(depth + 1);
    }
  });
  window.addEventListener("dragover", (event) => {
    if (holds(event)) event.preventDefault();
  });
  window.addEventListener("dragleave", (event) => {
    if (holds(event)) show(depth - 1);
  });
  window.addEventListener("drop", (event) => {
    if (!holds(event)) return;
    event.preventDefault();
    show(0);
    const file = event.dataTransfer?.files[0];
    if (file) onFile(file);
  });
}
