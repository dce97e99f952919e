// The reader checks the layout; the generator draws line strokes on an 8x8 grid by distance to the nearest stroke.
#include "cinta/data/digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "cinta/core/random.h"

namespace cinta::data {
namespace {

constexpr int64_t side = 8, pixels = side * side;
constexpr float brightest = 16;

struct Point {
  float x, y;
};

/// A glyph: points joined by straight strokes, in a box [-1,1] x [-1,1], y down; a pen-up between polylines.
constexpr Point up{9, 9};
const std::array<std::vector<Point>, 10>& glyphs() {
  static const std::array<std::vector<Point>, 10> all = {{
      {{0, -1}, {.6f, -.7f}, {.7f, 0}, {.6f, .7f}, {0, 1}, {-.6f, .7f}, {-.7f, 0}, {-.6f, -.7f}, {0, -1}},
      {{-.4f, -.5f}, {.1f, -1}, {.1f, 1}, up, {-.35f, 1}, {.55f, 1}},
      {{-.6f, -.6f}, {-.2f, -1}, {.4f, -.9f}, {.6f, -.4f}, {.3f, .1f}, {-.6f, 1}, {.7f, 1}},
      {{-.6f, -.9f}, {.1f, -1}, {.6f, -.6f}, {.3f, -.1f}, {-.1f, 0}, {.4f, .1f}, {.6f, .6f}, {.1f, 1}, {-.6f, .9f}},
      {{.1f, -1}, {-.6f, .3f}, {.7f, .3f}, up, {.35f, -.3f}, {.3f, 1}},
      {{.6f, -1}, {-.5f, -1}, {-.55f, -.1f}, {.2f, -.2f}, {.6f, .3f}, {.4f, .8f}, {-.1f, 1}, {-.6f, .9f}},
      {{.4f, -1}, {-.2f, -.6f}, {-.6f, .2f}, {-.4f, .8f}, {.1f, 1}, {.6f, .6f}, {.4f, .1f}, {-.1f, 0}, {-.5f, .3f}},
      {{-.6f, -1}, {.6f, -1}, {.1f, 0}, {-.2f, 1}, up, {-.3f, .05f}, {.5f, .05f}},
      {{0, 0},
       {-.5f, -.4f},
       {-.3f, -.9f},
       {.3f, -.9f},
       {.5f, -.4f},
       {0, 0},
       {-.6f, .5f},
       {-.2f, 1},
       {.3f, 1},
       {.6f, .5f},
       {0, 0}},
      {{.5f, -.4f}, {.1f, 0}, {-.4f, -.1f}, {-.6f, -.5f}, {-.2f, -1}, {.3f, -.9f}, {.5f, -.4f}, {.5f, .3f}, {.2f, 1}},
  }};
  return all;
}

float distance_to_stroke(Point p, Point a, Point b) {
  const float dx = b.x - a.x, dy = b.y - a.y;
  const float along = std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / (dx * dx + dy * dy), 0.0f, 1.0f);
  return std::hypot(p.x - a.x - along * dx, p.y - a.y - along * dy);
}

/// The affine map of one picture and its pen, from its own Philox words.
struct Hand {
  float cosine, sine, slant, width, height, shift_x, shift_y, pen;

  Hand(uint64_t seed, int64_t index) {
    std::array<float, 8> r{};
    for (uint64_t i = 0; i < r.size(); ++i)
      r[i] = 2 * to_uniform(random_word(seed, stream_id("digits.hand"), 0, static_cast<uint64_t>(index) * 8 + i)) - 1;
    const float angle = r[0] * std::numbers::pi_v<float> / 12;
    cosine = std::cos(angle), sine = std::sin(angle), slant = 0.25f * r[1];
    width = 2.7f + 0.5f * r[2], height = 3.2f + 0.4f * r[3];
    shift_x = 3.5f + 0.5f * r[4], shift_y = 3.5f + 0.4f * r[5];
    pen = 0.75f + 0.2f * r[6];
  }
  Point operator()(Point p) const {
    const float x = (p.x + slant * p.y) * width, y = p.y * height;
    return {shift_x + cosine * x - sine * y, shift_y + sine * x + cosine * y};
  }
};

void draw(double* out, uint64_t seed, int64_t index) {
  const Hand hand(seed, index);
  std::vector<Point> strokes;
  for (Point p : glyphs()[static_cast<size_t>(index % 10)]) {
    const float jitter_x = static_cast<float>(
        random_normal(seed, stream_id("digits.jitter"), static_cast<uint32_t>(2 * strokes.size()), uint64_t(index)));
    const float jitter_y = static_cast<float>(random_normal(
        seed, stream_id("digits.jitter"), static_cast<uint32_t>(2 * strokes.size() + 1), uint64_t(index)));
    strokes.push_back(p.x == up.x ? up : hand({p.x + 0.06f * jitter_x, p.y + 0.06f * jitter_y}));
  }
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    const Point here{static_cast<float>(pixel % side), static_cast<float>(pixel / side)};
    float nearest = 100;
    for (size_t i = 1; i < strokes.size(); ++i)
      if (strokes[i - 1].x != up.x && strokes[i].x != up.x)
        nearest = std::min(nearest, distance_to_stroke(here, strokes[i - 1], strokes[i]));
    const float ink = std::clamp((hand.pen + 0.5f - nearest) * brightest, 0.0f, brightest);
    const double noise =
        1.2 * random_normal(seed, stream_id("digits.noise"), 0, static_cast<uint64_t>(index * pixels + pixel));
    out[pixel] = std::round(std::clamp(ink + (ink > 0 ? static_cast<float>(noise) : 0.0f), 0.0f, brightest));
  }
}

}  // namespace

Examples read_digits(const std::string& path, Where where) {
  const Table table = read_csv(path, {.columns = pixels + 1, .last_column = class_column}, where);
  for (size_t i = 0; i < table.values.size(); ++i)
    if (i % (pixels + 1) != pixels && (table.values[i] < 0 || table.values[i] > brightest))
      throw FileError(
          located("digits",
                  join(path, ": line ", table.first_line + static_cast<int64_t>(i / (pixels + 1)), ": column ",
                       i % (pixels + 1) + 1, ": found ", table.values[i], ", expected a pixel in [0, 16]"),
                  where));
  return examples_from_table(table, path, 10, where);
}

Examples generate_digits(int64_t count, uint64_t seed, Where where) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max() / (pixels * int64_t{sizeof(double)});
  require(count >= 0 && count <= most, "digits", where, "a number of digits whose bytes fit 63 bits, given ", count);
  Examples out{count, pixels, 10, std::vector<double>(static_cast<size_t>(count * pixels)), {}};
  for (int64_t i = 0; i < count; ++i) {
    draw(out.inputs.data() + i * pixels, seed, i);
    out.labels.push_back(i % 10);
  }
  return out;
}

}  // namespace cinta::data
