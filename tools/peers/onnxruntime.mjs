// User time and wall time of a run by onnxruntime, in microseconds:
// node onnxruntime.mjs PACKAGES THREADS MODEL.onnx "NAME=1x3x48x48 ..." REPEAT
// PACKAGES is the folder where onnxruntime-node is installed: npm install --ignore-scripts onnxruntime-node
import { createRequire } from 'module';
import { resolve } from 'path';

const [packages, threads, file, shapes, repeat] = process.argv.slice(2);
const ort = createRequire(resolve(packages) + '/')('onnxruntime-node');
const session = await ort.InferenceSession.create(file, {
  intraOpNumThreads: Number(threads), interOpNumThreads: 1, executionProviders: ['cpu'], logSeverityLevel: 3,
});
const feeds = {};
for (const spec of shapes.split(' ')) {
  const [name, text] = spec.split('=');
  const shape = text === '' ? [] : text.split('x').map(Number);
  const count = shape.reduce((a, b) => a * b, 1);
  const whole = session.inputMetadata.find((input) => input.name === name).type === 'int64';
  feeds[name] = whole ? new ort.Tensor('int64', new BigInt64Array(count).fill(16000n), shape)
                      : new ort.Tensor('float32', Float32Array.from({ length: count }, () => 2 * Math.random() - 1), shape);
}
for (let i = 0; i < 2; ++i) await session.run(feeds);
const times = [], before = process.cpuUsage();
for (let i = 0; i < Number(repeat); ++i) {
  const start = process.hrtime.bigint();
  await session.run(feeds);
  times.push(Number(process.hrtime.bigint() - start) / 1e3);
}
const user = process.cpuUsage(before).user / Number(repeat);
times.sort((a, b) => a - b);
console.log(`user ${user.toFixed(1)} wall ${times[times.length >> 1].toFixed(1)}`);
