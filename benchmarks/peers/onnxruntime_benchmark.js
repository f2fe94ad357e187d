// ONNX Runtime as a peer of model benchmarks: loads models and runs them on one thread, on command.
//
// usage: node onnxruntime_benchmark.js FOLDER
// FOLDER is where `npm i --ignore-scripts onnxruntime-node@1.30.0` was run. One command a line on standard input, one
// line of JSON for each on standard output:
//   load NAME PATH   a model as NAME                         {"version": "1.30.0"}
//   run NAME NS      runs it for NS nanoseconds at least     {"ns": [each run's time]}
// An error is {"error": "text"}.
'use strict';

const path = require('path');
const readline = require('readline');

const MIN_RUNS = 3;
const WARM_UP_RUNS = 2;

const folder = path.resolve(process.argv[2] || '.', 'node_modules');
const common = require(path.join(folder, 'onnxruntime-common'));
// The package's own binding: its run() is the call itself, without the promise and the turn of the event loop around
// it, which take longer than a small model.
const { binding, initOrt } = require(path.join(folder, 'onnxruntime-node', 'dist', 'binding.js'));
const { version } = require(path.join(folder, 'onnxruntime-node', 'package.json'));

const ARRAYS = { 1: ['float32', Float32Array], 2: ['uint8', Uint8Array], 3: ['int8', Int8Array] };
const sessions = new Map();

// Random bytes for integers, [-1, 1) for floats.
function randomTensor(metadata) {
  const known = ARRAYS[metadata.type];
  if (known === undefined) throw new Error(`input '${metadata.name}' has element type ${metadata.type}`);
  const [type, Elements] = known;
  const shape = metadata.shape.map((extent) => (extent > 0 ? extent : 1));
  const data = new Elements(shape.reduce((product, extent) => product * extent, 1));
  let state = 1;
  for (let i = 0; i < data.length; ++i) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    data[i] = type === 'float32' ? state / 2147483648 - 1 : state >>> 24;
  }
  return new common.Tensor(type, data, shape);
}

function load(name, file) {
  initOrt();
  const session = new binding.InferenceSession();
  session.loadModel(file, {
    executionProviders: ['cpu'],
    executionMode: 'sequential',
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    graphOptimizationLevel: 'all',
  });
  const feeds = {};
  const fetches = {};
  for (const input of session.inputMetadata) feeds[input.name] = randomTensor(input);
  for (const output of session.outputMetadata) fetches[output.name] = null;
  sessions.set(name, { session, feeds, fetches });
  return { version };
}

function run(name, leastNs) {
  const known = sessions.get(name);
  if (known === undefined) throw new Error(`no model '${name}' is loaded`);
  const { session, feeds, fetches } = known;
  const options = {};
  for (let i = 0; i < WARM_UP_RUNS; ++i) session.run(feeds, fetches, options);
  const ns = [];
  let total = 0;
  while (total < leastNs || ns.length < MIN_RUNS) {
    const begin = process.hrtime.bigint();
    session.run(feeds, fetches, options);
    ns.push(Number(process.hrtime.bigint() - begin));
    total += ns[ns.length - 1];
  }
  return { ns };
}

const commands = { load, run: (name, ns) => run(name, Number(ns)) };

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const [command, ...words] = line.split('\t');
  let answer;
  try {
    if (commands[command] === undefined) throw new Error(`unknown command '${command}'`);
    answer = commands[command](...words);
  } catch (error) {
    answer = { error: String(error.message || error) };
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
});
