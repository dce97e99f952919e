// Recipes as users write them.
#include <charconv>
#include <set>

#include "cinta/autograd/narrow_products.h"

namespace cinta::autograd {
namespace {

/// "e4m3", "e5m2fnuz": without the f8 that all of them have.
bool set_format(Dtype& format, std::string_view text) {
  for (Dtype one : {Dtype::f8e4m3, Dtype::f8e5m2, Dtype::f8e4m3fnuz, Dtype::f8e5m2fnuz})
    if (name_of(one).substr(2) == text) return format = one, true;
  return false;
}

template <class Number>
bool set_number(Number& number, std::string_view text) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

bool set_choice(bool& choice, std::string_view text, std::string_view yes, std::string_view no) {
  choice = text == yes;
  return choice || text == no;
}

bool set(ProductRecipe& recipe, std::string_view name, std::string_view value) {
  if (name == "forward") return set_format(recipe.forward, value);
  if (name == "gradient") return set_format(recipe.gradient, value);
  if (name == "history") return set_number(recipe.history, value);
  if (name == "margin") return set_number(recipe.margin, value);
  if (name == "amax") return set_choice(recipe.most_recent, value, "recent", "max");
  if (name == "sizes") return set_choice(recipe.pad, value, "pad", "refuse");
  if (name != "wide" || value.empty()) return false;
  recipe.wide_modules.emplace_back(value);
  return true;
}

/// Throws where `name` was given already, or says nothing in this scaling.
void check_name(std::string_view name, std::set<std::string_view>& given, ProductScaling scaling, Where where) {
  require(given.insert(name).second || name == "wide", "fp8", where, name, " is given twice");
  const bool of_steps = name == "history" || name == "amax", of_tensors = name == "margin";
  require(!of_steps || scaling == ProductScaling::delayed, "fp8", where, name, " is for delayed scales alone");
  require(!of_tensors || scaling == ProductScaling::current || scaling == ProductScaling::delayed, "fp8", where, name,
          " is for current and delayed scales");
}

}  // namespace

ProductRecipe parse_product_recipe(std::string_view text, Where where) {
  constexpr std::string_view scalings[] = {"none", "current", "delayed", "block"};
  ProductRecipe recipe;
  std::set<std::string_view> given;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size()), equals = text.find('=', begin);
    const std::string_view part = text.substr(begin, end - begin);
    bool fits = false;
    for (size_t i = 0; begin == 0 && i < std::size(scalings); ++i)
      if (part == scalings[i]) recipe.scaling = static_cast<ProductScaling>(i), fits = true;
    if (equals < end) fits = set(recipe, text.substr(begin, equals - begin), text.substr(equals + 1, end - equals - 1));
    require(fits, "fp8", where,
            "none, current, delayed or block, then history=N, amax=max|recent, margin=N, forward=e4m3, gradient=e5m2, "
            "sizes=pad|refuse, wide=PATH; given '",
            part, "' in '", text, "'");
    if (equals < end) check_name(text.substr(begin, equals - begin), given, recipe.scaling, where);
    begin = end + 1;
  }
  return recipe;
}

}  // namespace cinta::autograd
