/** Files dropped on the page, as vectors. */

import { byId } from "./elements.js";
import { VectorError, checkVectors, fromPixels, parseNpy, parseText } from "./vectors.js";

/** @typedef {import("./api.js").Info} Info */

const MOST_BYTES = 8 * 2 ** 20;
const MOST_VECTORS = 20;

/** @param {File} file @param {Info} info @returns {Promise<number[][]>} */
export async function vectorsOf(file, info) {
  if (file.type.startsWith("image/")) return [await pictureVector(file, info)];
  if (file.size > MOST_BYTES) throw new VectorError(`${file.name} is larger than 8 MiB; give one vector or a few.`);
  const ending = file.name.toLowerCase().split(".").pop() ?? "";
  if (!["npy", "json", "csv", "txt", "tsv"].includes(ending)) {
    const picture = info.image ? " or a picture" : "";
    throw new VectorError(`${file.name} cannot be read; give an .npy, .json, .csv or .txt file${picture}.`);
  }
  const rows = ending === "npy" ? parseNpy(await file.arrayBuffer()) : parseText(await file.text(), info.features);
  return checkVectors(rows, info.features, MOST_VECTORS);
}

/** @param {File} file @param {Info} info @returns {Promise<number[]>} */
async function pictureVector(file, info) {
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
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: true }));
  context.imageSmoothingQuality = "high";
  const fit = Math.min(width / bitmap.width, height / bitmap.height);
  const [across, down] = [bitmap.width * fit, bitmap.height * fit];
  context.fillStyle = "#000";
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, (width - across) / 2, (height - down) / 2, across, down);
  return fromPixels(context.getImageData(0, 0, width, height).data, colour, white ?? 1);
}

/** @param {(file: File) => void} onFile */
export function listenForFiles(onFile) {
  const holds = (/** @type {DragEvent} */ event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  let depth = 0;
  const show = (/** @type {number} */ now) => {
    depth = Math.max(0, now);
    byId("drop").hidden = depth === 0;
  };
  window.addEventListener("dragenter", (event) => { if (holds(event)) { event.preventDefault(); show(depth + 1); } });
  window.addEventListener("dragover", (event) => { if (holds(event)) event.preventDefault(); });
  window.addEventListener("dragleave", (event) => { if (holds(event)) show(depth - 1); });
  window.addEventListener("drop", (event) => {
    if (!holds(event)) return;
    event.preventDefault();
    show(0);
    const file = event.dataTransfer?.files[0];
    if (file) onFile(file);
  });
}
