// Blocks of plain values and arrays: the other half of reluflow.playback.messages.

const TYPES = { f8: Float64Array, f4: Float32Array, u4: Uint32Array, u1: Uint8Array };

/**
 * @typedef {{message: any, arrays: Object<string, any>}} Received
 */

/**
 * Read a block of bytes.
 * @param {ArrayBuffer} buffer
 * @returns {Received}
 */
export function readBlock(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  return { message: header.message, arrays: views(header.arrays, buffer, 4 + length) };
}

/**
 * Read a message whose arrays are base64, as it stands inside a page.
 * @param {string} text
 * @returns {Received}
 */
export function readText(text) {
  const header = JSON.parse(text);
  const raw = atob(header.body);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) bytes[i] = raw.charCodeAt(i);
  return { message: header.message, arrays: views(header.arrays, bytes.buffer, 0) };
}

function views(table, buffer, start) {
  const arrays = {};
  for (const [name, type, offset, count] of table) {
    arrays[name] = new TYPES[type](buffer, start + offset, count);
  }
  return arrays;
}

/**
 * A message with a file beside it, as one block.
 * @param {any} message
 * @param {Uint8Array} blob
 * @returns {ArrayBuffer}
 */
export function writeBlock(message, blob) {
  const table = [["blob", "u1", 0, blob.length]];
  let header = JSON.stringify({ message, arrays: table });
  let bytes = new TextEncoder().encode(header);
  const padding = (8 - ((bytes.length + 4) % 8)) % 8;
  header += " ".repeat(padding);
  bytes = new TextEncoder().encode(header);
  const made = new Uint8Array(4 + bytes.length + blob.length);
  new DataView(made.buffer).setUint32(0, bytes.length, true);
  made.set(bytes, 4);
  made.set(blob, 4 + bytes.length);
  return made.buffer;
}
