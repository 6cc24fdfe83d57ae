/** The colours of statuses, measured: they can be read, and people who cannot tell red from green tell them apart. */

import { describe, expect, test } from "vitest";
import styles from "./styles.css?raw";

type Three = [number, number, number];
type Colours = Record<string, Three>;

const GROUNDS = ["paper", "canvas"];
const APART = ["failed", "completed", "running", "waiting", "upstream"];
const READABLE = 4.5;
const DISTANCE = 10;

/** Machado, Oliveira and Fernandes (2009), for those who lack the cones altogether, on linear light. */
const SIGHT: Record<string, [Three, Three, Three]> = {
  "all cones": [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
};

/** The colours of a theme by name, as shares of red, green and blue. */
function coloursOf(block: string): Colours {
  const colours: Colours = {};
  for (const [, name, hex] of block.matchAll(/--([\w-]+): #([0-9a-f]{6})/g))
    colours[name!] = [0, 2, 4].map((at) => Number.parseInt(hex!.slice(at, at + 2), 16) / 255) as Three;
  return colours;
}

const blocks = styles.split('[data-theme="dark"] {');
const THEMES = { light: coloursOf(blocks[0]!), dark: coloursOf(blocks[1]!.split("}")[0]!) };

const linear = (colour: Three) =>
  colour.map((share) => (share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4)) as Three;
const times = (matrix: readonly Three[], [x, y, z]: Three) =>
  matrix.map(([a, b, c]) => a * x + b * y + c * z) as Three;
const light = (colour: Three) => times([[0.2126, 0.7152, 0.0722]], linear(colour))[0];

function contrast(one: Three, other: Three) {
  const [dark, bright] = [light(one), light(other)].sort((a, b) => a - b) as [number, number];
  return (bright + 0.05) / (dark + 0.05);
}

/** A badge has a tenth of its colour on its ground. */
const tinted = (colour: Three, ground: Three) =>
  colour.map((share, index) => 0.1 * share + 0.9 * ground[index]!) as Three;

/** CIE L*a*b* of a colour, as somebody sees it. */
function lab(colour: Three, sight: [Three, Three, Three]): Three {
  const seen = times(sight, linear(colour)).map((share) => Math.min(1, Math.max(0, share))) as Three;
  const [x, y, z] = times(
    [
      [0.4339, 0.3762, 0.1899],
      [0.2126, 0.7152, 0.0722],
      [0.0177, 0.1095, 0.8729],
    ],
    seen,
  ).map((share) => (share > 0.008856 ? Math.cbrt(share) : 7.787 * share + 16 / 116)) as Three;
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

const radians = (degrees: number) => (degrees * Math.PI) / 180;
const hue = (a: number, b: number) => ((Math.atan2(b, a) * 180) / Math.PI + 360) % 360;

/** CIEDE2000: below 2 nobody sees a difference, from 10 on it is seen at a glance. */
function distance([l1, a1, b1]: Three, [l2, a2, b2]: Three) {
  const mean = (Math.hypot(a1, b1) + Math.hypot(a2, b2)) / 2;
  const grey = 1.5 - 0.5 * Math.sqrt(mean ** 7 / (mean ** 7 + 25 ** 7));
  const [c1, c2] = [Math.hypot(a1 * grey, b1), Math.hypot(a2 * grey, b2)];
  const [h1, h2] = [hue(a1 * grey, b1), hue(a2 * grey, b2)];
  const turn = ((h2 - h1 + 540) % 360) - 180;
  const [l, c, h] = [(l1 + l2) / 2, (c1 + c2) / 2, (h1 + turn / 2 + 360) % 360];
  const weight =
    1 -
    0.17 * Math.cos(radians(h - 30)) +
    0.24 * Math.cos(radians(2 * h)) +
    0.32 * Math.cos(radians(3 * h + 6)) -
    0.2 * Math.cos(radians(4 * h - 63));
  const dl = (l2 - l1) / (1 + (0.015 * (l - 50) ** 2) / Math.sqrt(20 + (l - 50) ** 2));
  const dc = (c2 - c1) / (1 + 0.045 * c);
  const dh = (2 * Math.sqrt(c1 * c2) * Math.sin(radians(turn / 2))) / (1 + 0.015 * c * weight);
  const blue = Math.sin(radians(60 * Math.exp(-(((h - 275) / 25) ** 2))));
  return Math.sqrt(dl ** 2 + dc ** 2 + dh ** 2 - 2 * Math.sqrt(c ** 7 / (c ** 7 + 25 ** 7)) * blue * dc * dh);
}

test("the distance is that of Sharma, Wu and Dalal's published pairs", () => {
  expect(distance([50, 2.6772, -79.7751], [50, 0, -82.7485])).toBeCloseTo(2.0425, 3);
  expect(distance([50, 2.5, 0], [58, 24, 15])).toBeCloseTo(19.4535, 3);
  expect(distance([6.7747, -0.2908, -2.4247], [5.8714, -0.0985, -2.2286])).toBeCloseTo(0.6377, 3);
});

describe.each(Object.entries(THEMES))("%s", (_, colours) => {
  const statuses = Object.entries(colours).filter(([name]) => name.startsWith("st-"));

  test("statuses can be read, on the page and as badges", () => {
    expect(statuses).toHaveLength(10);
    for (const [name, colour] of statuses) {
      for (const ground of GROUNDS.map((each) => colours[each]!)) {
        expect.soft(contrast(colour, ground), name).toBeGreaterThanOrEqual(READABLE);
        expect
          .soft(contrast(colour, tinted(colour, ground)), `${name} as a badge`)
          .toBeGreaterThanOrEqual(READABLE);
      }
    }
  });

  test.each(Object.entries(SIGHT))("statuses stay apart with %s", (_, sight) => {
    for (const [index, one] of APART.entries()) {
      for (const other of APART.slice(index + 1)) {
        const found = distance(lab(colours[`st-${one}`]!, sight), lab(colours[`st-${other}`]!, sight));
        expect.soft(found, `${one} and ${other}`).toBeGreaterThanOrEqual(DISTANCE);
      }
    }
  });
});
