// The chart of exponents: every tensor by layer, and no text upon another, in a small model and in a large one.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "cinta/train/exponents.h"
#include "cinta/train/plot_markup.h"
#include "svg.h"

using namespace cinta;
using namespace cinta::testing;
using train::Exponents;

namespace {

Exponents tensor(Exponents::Kind kind, const std::string& name, int exponent) {
  Exponents out;
  out.kind = kind;
  out.name = name;
  out.counts[static_cast<size_t>(exponent - Exponents::least)] = 999;
  out.counts[static_cast<size_t>(-40 - Exponents::least)] = 1;
  out.not_finite = exponent == 20 ? 123456 : 0;
  return out;
}

/// What a Transformer of so many layers would leave.
std::vector<Exponents> transformer(int layers) {
  std::vector<Exponents> out;
  for (const auto kind : {Exponents::forward, Exponents::gradient}) {
    for (int i = 0; i < layers; ++i)
      for (const char* op : {"linear", "self_attention", "linear 2", "residual_norm", "linear 3", "gelu"})
        out.push_back(tensor(kind, "bert.encoder.layer." + std::to_string(i) + "/" + op, i));
    out.push_back(tensor(kind, "outside of modules/cross_entropy", 20));
  }
  for (const auto kind : {Exponents::weight, Exponents::weight_gradient})
    for (int i = 0; i < layers; ++i)
      for (const char* name : {"attention.output.LayerNorm.weight", "attention.output.LayerNorm.bias"})
        out.push_back(tensor(kind, "bert.encoder.layer." + std::to_string(i) + "." + name, -i));
  return out;
}

double number_after(const std::string& element, const std::string& name) {
  return std::stod(element.substr(element.find(name + "=\"") + name.size() + 2));
}

/// The stretches that texts take, by the line they stand on.
std::map<double, std::vector<std::pair<double, double>>> lines_of_text(const std::string& svg) {
  std::map<double, std::vector<std::pair<double, double>>> out;
  for (const std::string& element : all_between(svg, "<text ", "</text>")) {
    if (element.find("font-size") != element.npos) continue;  // the title
    const std::string text = element.substr(element.find('>') + 1);
    const double x = number_after(element, "x"), width = train::plot_letter * static_cast<double>(text.size());
    const bool middle = element.find("\"middle\"") != element.npos, end = element.find("\"end\"") != element.npos;
    const double left = middle ? x - width / 2 : end ? x - width : x;
    out[number_after(element, "y")].emplace_back(left, left + width);
  }
  return out;
}

}  // namespace

TEST_CASE("the chart of exponents has a line for each tensor, under its layer", "[exponents]") {
  const std::string svg = train::svg_of({{1, transformer(2)}, {30, transformer(2)}});
  CHECK(balanced(svg));
  for (const char* part :
       {"step 1<", "step 30<", "gradients of weights", "f16<", "f8e4m3<", "f8e5m2<", "123k not finite"})
    CHECK(svg.find(part) != std::string::npos);
  CHECK(all_between(svg, ">bert.encoder.layer.1", "/text>").size() == 4);  // once a kind
  CHECK(all_between(svg, ">linear 2", "/text>").size() == 2 * 2);          // once for both steps
  CHECK(all_between(svg, ">attention.output.LayerNorm.bias", "/text>").size() == 2 * 2);
  CHECK(all_between(svg, ">0.1", "/text>").size() > 0);  // the share that f16 makes 0
}

TEST_CASE("the chart of exponents grows with the model and stays readable", "[exponents]") {
  for (const int layers : {1, 2, 24}) {
    const auto one = transformer(layers);
    const std::string svg = train::svg_of({{1, one}, {1000000, one}});
    const double width = number_after(svg, "width"), height = number_after(svg, "height");
    size_t texts = 0;
    for (auto& [y, stretches] : lines_of_text(svg)) {
      CHECK(y < height);
      std::ranges::sort(stretches);
      CHECK(stretches.front().first >= 0);
      CHECK(stretches.back().second <= width);
      for (size_t i = 1; i < stretches.size(); ++i) CHECK(stretches[i - 1].second <= stretches[i].first);
      texts += stretches.size();
    }
    CHECK(texts > one.size());
    CHECK(height > 14.0 * static_cast<double>(one.size()));
    CHECK(svg.size() < 20000 + 2000 * one.size());
  }
}
