// Writes models of one com.microsoft node each, and onnxruntime's answers beside them: node microsoft.mjs PACKAGES FOLDER
// PACKAGES is the folder where onnxruntime-node is installed. tests/data/models/microsoft is what version 1.30 gave.
import { createRequire } from 'module';
import { mkdirSync, writeFileSync } from 'fs';
import { join, resolve } from 'path';

const [packages, folder] = process.argv.slice(2);
const ort = createRequire(resolve(packages) + '/')('onnxruntime-node');
mkdirSync(folder, { recursive: true });

// ---- protobuf ----

function varint(n) {
  const out = [];
  for (n = BigInt.asUintN(64, BigInt(n)); n > 127n; n >>= 7n) out.push(Number((n & 127n) | 128n));
  return Buffer.from([...out, Number(n)]);
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
function part(field, data) {
  const bytes = Buffer.from(data);
  return Buffer.concat([varint((field << 3) | 2), varint(bytes.length), bytes]);
}
function real(field, value) {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return Buffer.concat([varint((field << 3) | 5), bytes]);
}

// ---- tensors: pseudo-random where no values are given ----

const kinds = {
  float32: [1, Float32Array, 'F32', () => Math.round((random() * 4 - 2) * 64) / 64],
  uint8: [2, Uint8Array, 'U8', () => Math.floor(random() * 256)],
  // 7 bits: without VNNI onnxruntime adds pairs of uint8 times int8 in 16 bits, which saturate.
  int8: [3, Int8Array, 'I8', () => Math.floor(random() * 128) - 64],
  int32: [6, Int32Array, 'I32', () => 0],
  int64: [7, BigInt64Array, 'I64', () => 0],
  bool: [9, Uint8Array, 'BOOL', () => 0],
};
let seed = 1;
function random() {
  seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
  return (seed >>> 8) / 16777216;
}
function tensor(type, dims, values) {
  const count = dims.reduce((a, b) => a * b, 1);
  const given = typeof values === 'number' ? Array(count).fill(values) : values;
  const list = given ?? Array.from({ length: count }, kinds[type][3]);
  return { type, dims, data: kinds[type][1].from(list, type === 'int64' ? BigInt : Number) };
}
const f32 = (dims, values) => tensor('float32', dims, values);
const u8 = (dims, values) => tensor('uint8', dims, values);
const i8 = (dims, values) => tensor('int8', dims, values);
const i32 = (dims, values) => tensor('int32', dims, values);
const i64 = (dims, values) => tensor('int64', dims, values);
const known = (one) => ({ ...one, constant: true });  // an initializer
const scale = (value) => known(f32([], [value]));
const zero8 = (value) => known(i8([], [value]));
const zero = (value) => known(u8([], [value]));

// ---- files ----

function attribute(name, value) {
  const body = value.real !== undefined ? [real(2, value.real), number(20, 1)]
    : typeof value === 'string' ? [part(4, value), number(20, 3)]
    : Array.isArray(value) ? [...value.map((one) => number(8, one)), number(20, 7)]
    : [number(3, value), number(20, 2)];
  return part(5, Buffer.concat([part(1, name), ...body]));
}
function info(name, type, dims) {
  const shape = dims ? [part(2, Buffer.concat(dims.map((d) => part(1, number(1, d)))))] : [];
  const described = Buffer.concat([number(1, kinds[type][0]), ...shape]);
  return Buffer.concat([part(1, name), part(2, part(1, described))]);
}
const bytes_of = (one) => Buffer.from(one.data.buffer, one.data.byteOffset, one.data.byteLength);
function initializer(name, one) {
  const dims = one.dims.map((d) => number(1, d));
  return part(5, Buffer.concat([...dims, number(2, kinds[one.type][0]), part(8, name), part(9, bytes_of(one))]));
}
function safetensors(model, entries) {
  const header = { __metadata__: { model } };
  let at = 0;
  for (const [name, one] of entries) {
    header[name] = { dtype: kinds[one.type][2], shape: one.dims, data_offsets: [at, at + bytes_of(one).length] };
    at += bytes_of(one).length;
  }
  const text = Buffer.from(JSON.stringify(header)), length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, ...entries.map(([, one]) => bytes_of(one))]);
}

// inputs: null for one that is left out. outputs: their types.
async function write(name, op, inputs, attributes, outputs) {
  const names = inputs.map((one, i) => (one ? `i${i}` : ''));
  const node = [...names.map((n) => part(1, n)), ...outputs.map((_, i) => part(2, `o${i}`)), part(4, op),
    ...Object.entries(attributes).map(([key, value]) => attribute(key, value)), part(7, 'com.microsoft')];
  const graph = [part(1, Buffer.concat(node)), part(2, name)];
  inputs.forEach((one, i) => {
    if (one) graph.push(one.constant ? initializer(names[i], one) : part(11, info(names[i], one.type, one.dims)));
  });
  outputs.forEach((type, i) => graph.push(part(12, info(`o${i}`, type))));
  const opset = (domain, version) => part(8, Buffer.concat([part(1, domain), number(2, version)]));
  const model = Buffer.concat([number(1, 8), part(7, Buffer.concat(graph)), opset('', 17), opset('com.microsoft', 1)]);
  const session = await ort.InferenceSession.create(model, { graphOptimizationLevel: 'disabled' });
  const given = inputs.map((one, i) => [names[i], one]).filter(([, one]) => one && !one.constant);
  const answers = await session.run(
    Object.fromEntries(given.map(([key, one]) => [key, new ort.Tensor(one.type, one.data, one.dims)])));
  const entries = [...given.map(([key, one]) => [`in.${key}`, one]),
    ...Object.entries(answers).map(([key, one]) => [`out.${key}`, { type: one.type, dims: [...one.dims], data: one.data }])];
  writeFileSync(join(folder, `${name}.onnx`), model);
  writeFileSync(join(folder, `${name}.ref.safetensors`), safetensors(`${name}.onnx`, entries));
}

// ---- quantised ----

const window = { kernel_shape: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1] };
for (const last of [0, 1]) {
  const places = (batch, channels, ...extents) => (last ? [batch, ...extents, channels] : [batch, channels, ...extents]);
  await write(`average_pool_${last}`, 'QLinearAveragePool',
    [u8(places(2, 3, 6, 7)), scale(0.051), zero(100), scale(0.062), zero(90)],
    { ...window, channels_last: last, ceil_mode: last, count_include_pad: 1 - last }, ['uint8']);
  await write(`global_average_pool_${last}`, 'QLinearGlobalAveragePool',
    [u8(places(2, 3, 5, 4)), scale(0.05), zero(100), scale(0.02), zero(120)], { channels_last: last }, ['uint8']);
  await write(`conv_${last}`, 'QLinearConv',
    [u8(places(1, 4, 5, 6)), scale(0.02), zero(130), known(i8([6, 4, 3, 3])),
      known(f32([6], [0.01, 0.02, 0.01, 0.03, 0.02, 0.01])), known(i8([6], 0)), scale(0.3), zero(128),
      known(i32([6], [10, 20, -500, 0, 1, 2]))],
    { channels_last: last, kernel_shape: [3, 3], pads: [1, 1, 1, 1] }, ['uint8']);
}
await write('softmax_13', 'QLinearSoftmax', [i8([3, 4, 5]), scale(0.03), zero8(10), scale(1 / 256), zero8(-128)],
  { axis: 1, opset: 13 }, ['int8']);
await write('softmax_12', 'QLinearSoftmax', [u8([3, 4, 5]), scale(0.03), zero(128), scale(1 / 256), zero(0)],
  { axis: 1, opset: 12 }, ['uint8']);
await write('where', 'QLinearWhere',
  [tensor('bool', [3, 1], [1, 0, 1]), u8([3, 4]), scale(0.05), zero(100), u8([4]), scale(0.03), zero(20), scale(0.06),
    zero(70)], {}, ['uint8']);
for (const turned of [0, 1])
  for (const rounded of [0, 1])
    await write(`gemm_${turned}${rounded}`, 'QGemm',
      [u8(turned ? [40, 3] : [3, 40]), scale(0.02), zero(130), known(i8(turned ? [5, 40] : [40, 5])),
        known(f32([5], [0.01, 0.02, 0.015, 0.03, 0.01])), known(i8([5], [0, 1, -3, 5, 2])),
        known(i32([5], [100, -200, 3000, 0, 50])), ...(rounded ? [scale(0.4), zero(128)] : [])],
      { transA: turned, transB: turned, alpha: { real: 0.75 } }, [rounded ? 'uint8' : 'float32']);
await write('nhwc_max_pool', 'NhwcMaxPool', [u8([2, 6, 7, 3])],
  { kernel_shape: [3, 2], strides: [2, 2], pads: [1, 0, 1, 0] }, ['uint8']);
await write('attention_8', 'QAttention',
  [u8([2, 5, 8]), known(i8([8, 24])), known(f32([24])), scale(0.02), scale(0.01), i32([2], [3, 5]), zero(120), zero8(2)],
  { num_heads: 2 }, ['float32']);
await write('attention_8_past', 'QAttention',
  [u8([1, 3, 8]), known(i8([8, 24])), known(f32([24])), scale(0.02), scale(0.01), null, zero(120), zero8(2),
    f32([2, 1, 2, 4, 4])], { num_heads: 2, unidirectional: 1 }, ['float32', 'float32']);
await write('embed_8', 'QEmbedLayerNormalization',
  [i32([2, 3], [0, 6, 2, 1, 3, 5]), i32([2, 3], [0, 1, 0, 1, 1, 0]), known(u8([7, 4])), known(u8([5, 4])),
    known(u8([2, 4])), known(u8([4])), known(u8([4])), i32([2, 3], [1, 1, 0, 1, 1, 1]), scale(0.01), scale(0.02),
    scale(0.01), scale(0.01), scale(0.02), zero(100), zero(110), zero(120), zero(0), zero(128)],
  { epsilon: { real: 1e-5 } }, ['float32', 'int32']);
for (const kind of [0, 1])
  await write(`matmul_bnb4_${kind}`, 'MatMulBnb4', [f32([3, 33]), known(u8([83])), known(f32([11]))],
    { K: 33, N: 5, block_size: 16, quant_type: kind }, ['float32']);
await write('gather_8', 'GatherBlockQuantized', [known(u8([6, 40])), i64([2, 2], [5, 0, -1, 2]), known(f32([6, 3]))],
  { bits: 8, block_size: 16 }, ['float32']);
for (const bits of [2, 4])
  await write(`gather_${bits}`, 'GatherBlockQuantized',
    [known(u8([6, 5 * bits])), i64([3], [5, 0, 2]), known(f32([6, 3])), known(u8([6, bits / 2]))],
    { bits, block_size: 16, quantize_axis: 1 }, ['float32']);

// ---- as ONNX has them ----

await write('trilu', 'Trilu', [f32([2, 4, 5]), known(i64([], [1]))], { upper: 0 }, ['float32']);
await write('expand_dims', 'ExpandDims', [f32([3, 4]), known(i32([], [-1]))], {}, ['float32']);
await write('gather_nd', 'GatherND', [f32([3, 4, 5]), i64([2, 2], [0, 3, 2, 1])], {}, ['float32']);
await write('grid_sample', 'GridSample',
  [f32([1, 2, 4, 5]), f32([1, 3, 3, 2], Array.from({ length: 18 }, (_, i) => Math.sin(i * 1.3) * 1.3))],
  { mode: 'bicubic', padding_mode: 'reflection', align_corners: 0 }, ['float32']);
await write('pad', 'Pad', [f32([3, 4]), known(i64([4], [1, 2, 0, 1])), known(f32([1], [0.5]))], {}, ['float32']);
await write('range', 'Range', [known(i32([], [1])), known(i32([], [7]))], {}, ['int32']);

// ---- matrices and windows ----

for (const metric of ['euclidean', 'sqeuclidean'])
  await write(`cdist_${metric}`, 'CDist', [f32([5, 7]), f32([3, 7])], { metric }, ['float32']);
await write('inverse', 'Inverse',
  [f32([2, 3, 3], [4, 1, 2, 0.5, 3, 1, 1, 0, 5, 2, -1, 0.25, 1, 4, 2, 0, 1, 3])], {}, ['float32']);
await write('unfold', 'UnfoldTensor', [f32([3, 7])], { dim: 1, size: 3, step: 2 }, ['float32']);
await write('transpose_matmul', 'TransposeMatMul', [f32([2, 4, 3]), f32([2, 5, 4])],
  { transA: 1, transB: 1, alpha: { real: 0.5 } }, ['float32']);
await write('matmul_batches', 'FusedMatMul', [f32([4, 2, 3]), f32([5, 2, 4])],
  { transBatchA: 1, transA: 1, transBatchB: 1, transB: 1 }, ['float32']);

// ---- attention ----

await write('attention_past', 'Attention', [f32([1, 3, 8]), known(f32([8, 24])), known(f32([24])), null, f32([2, 1, 2, 4, 4])],
  { num_heads: 2, unidirectional: 1 }, ['float32', 'float32']);
await write('heads_past', 'MultiHeadAttention',
  [f32([2, 3, 8]), f32([2, 3, 8]), f32([2, 3, 8]), known(f32([24])), null, null, f32([2, 2, 4, 4]), f32([2, 2, 4, 4])],
  { num_heads: 2 }, ['float32', 'float32', 'float32']);
const grouped = (name, attributes, further, batch = 1, steps = 3) => write(`grouped_${name}`, 'GroupQueryAttention',
  [f32([batch, steps, 64]), f32([batch, steps, 32]), f32([batch, steps, 32]), f32([batch, 2, 4, 16]),
    f32([batch, 2, 4, 16]), known(i32([batch], 3 + steps)), known(i32([1], [4 + steps])), known(f32([16, 8])),
    known(f32([16, 8])), ...further], { num_heads: 4, kv_num_heads: 2, ...attributes }, ['float32', 'float32', 'float32']);
await grouped('positions', { do_rotary: 1 }, [known(i64([1, 3], [2, 7, 5]))]);
await grouped('bias', {}, [null, f32([1, 4, 3, 7])]);
await grouped('sink', {}, [null, null, known(f32([4]))]);
await grouped('smooth', { smooth_softmax: 1 }, []);
await grouped('all', { do_rotary: 1, softcap: { real: 3 } }, [known(i64([2, 1], [4, 4])), f32([1, 1, 1, 5]), known(f32([4]))], 2, 1);
