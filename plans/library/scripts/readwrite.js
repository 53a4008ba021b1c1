// Reads, writes and scatter reads through a fleet of metadata-cache clients.
// The environment says how many clients there are, how fast they work, and
// which protections they have.
import { check } from 'k6';
import metacache from 'k6/x/metacache';

const env = (name, fallback) => (__ENV[name] === undefined ? fallback : __ENV[name]);
const on = (name, fallback) => env(name, String(fallback)) === 'true';
const items = Number(env('ITEMS', '2000'));

export const options = {
  scenarios: {
    mix: {
      executor: 'constant-arrival-rate',
      rate: Number(env('RATE', '500')),
      duration: env('DURATION', '30s'),
      preAllocatedVUs: Number(env('VUS', '64')),
      exec: 'mix',
      gracefulStop: '5s',
    },
    scan: {
      executor: 'constant-arrival-rate',
      rate: Number(env('SCANS', '10')),
      duration: env('DURATION', '30s'),
      preAllocatedVUs: 16,
      exec: 'scan',
      gracefulStop: '5s',
    },
  },
};

const fleet = new metacache.Fleet({
  clients: Number(env('CLIENTS', '200')),
  ttl: env('TTL', '10s'),
  jitter: Number(env('JITTER', '0.3')),
  singleflight: on('SINGLEFLIGHT', true),
  epochs: on('EPOCHS', true),
  push: on('PUSH', true),
  refresh: 'background',
  warm: true,
  timeout: env('TIMEOUT', '2s'),
});

export function mix() {
  const key = `item-${Math.floor(Math.random() * items)}`;
  const r = Math.random() < 0.9 ? fleet.read(key) : fleet.write(key, `written at ${Date.now()}`);
  check(r, { served: (r) => r.ok, fresh: (r) => r.epochLag === 0 });
}

export function scan() {
  const r = fleet.scan();
  check(r, {
    scanned: (r) => r.ok,
    'each document once': (r) => r.duplicates === 0 && r.missing === 0,
  });
}
