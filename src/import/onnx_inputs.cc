// Binding of dynamic dimensions: every input gets a static shape.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <deque>
#include <optional>
#include <set>

#include "import/onnx_emit.h"
#include "import/onnx_model.h"

namespace heddle::import {
namespace {

using proto::DimInfo;
using proto::ValueInfo;

using Bindings = std::map<std::string, int64_t, std::less<>>;

// "past_length + 1", "2*heads": exporters write such dimensions. Sums, products and parentheses of
// numbers and known symbols; other expressions have no value.
class DimExpression {
 public:
  DimExpression(std::string_view text, const Bindings& bindings)
      : text_(text), bindings_(bindings) {}

  std::optional<int64_t> value() {
    constexpr size_t kLongest = 200;
    if (text_.size() > kLongest) return std::nullopt;
    const std::optional<int64_t> result = sum();
    skip_spaces();
    return at_ == text_.size() ? result : std::nullopt;
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::optional<int64_t> sum() {
    std::optional<int64_t> left = product();
    while (left) {
      const bool plus = take('+');
      if (!plus && !take('-')) break;
      const std::optional<int64_t> right = product();
      int64_t result = 0;
      if (!right || (plus ? __builtin_add_overflow(*left, *right, &result)
                          : __builtin_sub_overflow(*left, *right, &result)))
        return std::nullopt;
      left = result;
    }
    return left;
  }

  std::optional<int64_t> product() {
    std::optional<int64_t> left = atom();
    while (left && take('*')) {
      const std::optional<int64_t> right = atom();
      int64_t result = 0;
      if (!right || __builtin_mul_overflow(*left, *right, &result)) return std::nullopt;
      left = result;
    }
    return left;
  }

  std::optional<int64_t> atom() {
    if (take('(')) {
      const std::optional<int64_t> inner = sum();
      return take(')') ? inner : std::nullopt;
    }
    const size_t begin = at_;
    const auto is_part = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
    };
    while (at_ < text_.size() && is_part(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) return std::nullopt;
    int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error == std::errc{} && end == word.data() + word.size()) return number;
    const auto found = bindings_.find(word);
    return found != bindings_.end() ? std::optional(found->second) : std::nullopt;
  }

  std::string_view text_;
  const Bindings& bindings_;
  size_t at_ = 0;
};

const char* kind_name(ValueInfo::Kind kind) {
  switch (kind) {
    case ValueInfo::Kind::none:
      return "a value without a type";
    case ValueInfo::Kind::tensor:
      return "a tensor";
    case ValueInfo::Kind::sequence:
      return "a sequence";
    case ValueInfo::Kind::map:
      return "a map";
    case ValueInfo::Kind::optional:
      return "an optional";
    case ValueInfo::Kind::sparse:
      return "a sparse tensor";
    case ValueInfo::Kind::opaque:
      return "an opaque value";
  }
  return "?";
}

Type type_of(const ValueInfo& tensor, std::string_view what) {
  return tensor.elem_type == kStringType ? tensor::kTextType : element_type(tensor.elem_type, what);
}

class Binder {
 public:
  Binder(const Options& options, Imported& result) : options_(options), result_(result) {}

  std::vector<Input> run(const std::vector<const ValueInfo*>& inputs);

 private:
  void check_options(const std::vector<const ValueInfo*>& inputs) const;
  void bind_from_shape(const ValueInfo& input);
  void bind(std::string_view symbol, int64_t value, std::string_view where);
  void bind_open(const ValueInfo& input);
  void bind_rest(const std::vector<const ValueInfo*>& inputs);
  Shape shape_of(const ValueInfo& input);
  Input sequence_of(const ValueInfo& input) const;
  void check_extents(const std::string& what, const Ints& extents) const;
  std::optional<Ints> given_shape(const ValueInfo& input) const {
    const std::string name(input.name);
    if (const auto found = options_.values.find(name); found != options_.values.end())
      return found->second.shape().extents();
    const auto found = options_.shapes.find(name);
    return found != options_.shapes.end() ? std::optional(found->second) : std::nullopt;
  }

  // The option that gave the shape of an input, for messages.
  std::string source_of(std::string_view name) const {
    return options_.shapes_of_values.contains(std::string(name))
               ? fmt::format("the value of input {}", quoted(name))
               : fmt::format("--shape {}", quoted(name));
  }
  std::vector<Shape> elements_of(std::string_view sequence, Type type) const;

  const Options& options_;
  Imported& result_;
  Bindings bindings_;
};

void Binder::bind(std::string_view symbol, int64_t value, std::string_view where) {
  const auto [at, fresh] = bindings_.emplace(symbol, value);
  if (!fresh && at->second != value)
    fail("dimension {} is {} and, by {}, {}", quoted(symbol), at->second, where, value);
}

// Unknown names are errors rather than ignored.
void Binder::check_options(const std::vector<const ValueInfo*>& inputs) const {
  std::set<std::string> names, sequences, symbols;
  for (const ValueInfo* input : inputs) {
    names.emplace(input->name);
    if (input->kind == ValueInfo::Kind::sequence) sequences.emplace(input->name);
    for (const DimInfo& dim : input->dims) {
      if (dim.kind == DimInfo::Kind::symbol) symbols.emplace(dim.symbol);
    }
  }
  const auto check_input = [&](const std::string& name) {
    if (!names.contains(name) && !sequences.contains(name.substr(0, name.rfind('#'))))
      fail("{}: the model has no such input; it has {}", source_of(name), fmt::join(names, ", "));
  };
  for (const auto& [name, shape] : options_.shapes) check_input(name);
  for (const auto& [name, value] : options_.values) check_input(name);
  const auto mentioned = [&](const std::string& name) {
    return std::any_of(symbols.begin(), symbols.end(), [&](const std::string& symbol) {
      return symbol.find(name) != std::string::npos;
    });
  };
  for (const auto& [name, value] : options_.dims) {
    if (!mentioned(name))
      fail("--dim {}: the model has no such dimension; it has {}", name,
           symbols.empty() ? "none by name" : fmt::format("{}", fmt::join(symbols, ", ")));
  }
}

void Binder::bind_from_shape(const ValueInfo& input) {
  const std::optional<Ints> given = given_shape(input);
  if (!given || !input.has_shape) return;
  if (given->size() != input.dims.size())
    fail("{}: {} dimensions, the input has {}", source_of(input.name), given->size(),
         input.dims.size());
  for (size_t i = 0; i < input.dims.size(); ++i) {
    const DimInfo& dim = input.dims[i];
    if (dim.kind == DimInfo::Kind::symbol) bind(dim.symbol, (*given)[i], source_of(input.name));
    if (dim.kind == DimInfo::Kind::value && dim.value != (*given)[i])
      fail("{}: dimension {} is {}, the model fixes it at {}", source_of(input.name), i,
           (*given)[i], dim.value);
  }
}

void Binder::bind_open(const ValueInfo& input) {
  const auto found = options_.open_shapes.find(std::string(input.name));
  if (found == options_.open_shapes.end() || found->second.size() != input.dims.size()) return;
  for (size_t i = 0; i < input.dims.size(); ++i) {
    const std::string_view symbol = input.dims[i].symbol;
    // Expressions of other dimensions keep the value that these give.
    if (input.dims[i].kind == DimInfo::Kind::symbol && !DimExpression(symbol, bindings_).value())
      bindings_.emplace(symbol, found->second[i]);
  }
}

bool is_expression(std::string_view symbol) {
  return symbol.find_first_of("+*-(") != std::string_view::npos;
}

void Binder::bind_rest(const std::vector<const ValueInfo*>& inputs) {
  const auto default_to_one = [&](std::string_view symbol) {
    bindings_.emplace(symbol, 1);
    result_.unbound.emplace_back(symbol, 1);
    result_.notes.push_back(
        fmt::format("dimension {} is dynamic: bound to 1 (--dim NAME=N binds it)", quoted(symbol)));
  };
  std::vector<std::string_view> expressions;
  for (const ValueInfo* input : inputs) {
    for (const DimInfo& dim : input->dims) {
      if (dim.kind != DimInfo::Kind::symbol || bindings_.contains(dim.symbol)) continue;
      if (is_expression(dim.symbol)) {
        expressions.push_back(dim.symbol);
      } else {
        default_to_one(dim.symbol);
      }
    }
  }
  for (std::string_view expression : expressions) {
    if (bindings_.contains(expression)) continue;
    if (const std::optional<int64_t> value = DimExpression(expression, bindings_).value()) {
      bindings_.emplace(expression, *value);
    } else {
      default_to_one(expression);
    }
  }
}

Shape Binder::shape_of(const ValueInfo& input) {
  const std::string what = fmt::format("input {}", quoted(input.name));
  if (input.kind != ValueInfo::Kind::tensor)
    fail("{} is {}; only tensors are supported", what, kind_name(input.kind));
  const Type type = type_of(input, what);
  const std::optional<Ints> given = given_shape(input);
  if (!input.has_shape && !given)
    fail("{} has no shape; give it one (--shape {}=...)", what, input.name);
  Ints extents;
  if (given) {
    extents = *given;
  } else {
    for (size_t i = 0; i < input.dims.size(); ++i) {
      const DimInfo& dim = input.dims[i];
      switch (dim.kind) {
        case DimInfo::Kind::value:
          extents.push_back(dim.value);
          break;
        case DimInfo::Kind::symbol:
          extents.push_back(bindings_.find(dim.symbol)->second);
          break;
        case DimInfo::Kind::unknown:
          extents.push_back(1);
          result_.unbound.emplace_back(fmt::format("{}[{}]", input.name, i), 1);
          result_.notes.push_back(
              fmt::format("dimension {} of {} is dynamic: bound to 1 (--shape binds it)", i, what));
      }
    }
  }
  check_extents(what, extents);
  return Shape::array(type, extents);
}

void Binder::check_extents(const std::string& what, const Ints& extents) const {
  if (static_cast<int64_t>(extents.size()) > kMaxRank)
    fail("{} has rank {}, at most {} is supported", what, extents.size(), kMaxRank);
  if (!sensible_extents(extents, options_.max_value_elems))
    fail("{} has shape [{}]; dimensions must be 0 or more and their product at most {}", what,
         fmt::join(extents, ","), options_.max_value_elems);
}

// Given as name#0, name#1, ...; if there are input values but none of these names, the sequence is
// empty.
std::vector<Shape> Binder::elements_of(std::string_view sequence, Type type) const {
  std::vector<Shape> shapes;
  for (;;) {
    const std::string name = fmt::format("{}#{}", sequence, shapes.size());
    if (const auto hint = options_.hints.find(name); hint != options_.hints.end()) {
      shapes.push_back(hint->second.shape());
      continue;
    }
    const auto found = options_.shapes.find(name);
    if (found == options_.shapes.end()) return shapes;
    shapes.push_back(Shape::array(type, found->second));
  }
}

// The options determine a sequence's elements.
Input Binder::sequence_of(const ValueInfo& input) const {
  const std::string what = fmt::format("input {}", quoted(input.name));
  const auto given = options_.sequences.find(std::string(input.name));
  if (given == options_.sequences.end() && options_.hints.empty() &&
      !options_.shapes.contains(fmt::format("{}#0", input.name)))
    fail(
        "{} is a sequence; the number and the shapes of its elements must be given (--input "
        "{}#0=...)",
        what, quoted(input.name));
  if (input.element == nullptr || input.element->kind != ValueInfo::Kind::tensor)
    fail("{} is a sequence of something other than tensors", what);
  const Type type = type_of(*input.element, what);
  const std::vector<Shape> elements =
      given == options_.sequences.end() ? elements_of(input.name, type) : given->second;
  for (const Shape& shape : elements) {
    if (shape.type() != type)
      fail("{} has elements of type {}, got {}", what, tensor::type_name(type), to_string(shape));
    check_extents(what, shape.extents());
  }
  return {input.name, Shape(), Value::Kind::sequence, elements,
          input.element->elem_type == kStringType};
}

std::vector<Input> Binder::run(const std::vector<const ValueInfo*>& inputs) {
  check_options(inputs);
  for (const auto& [name, value] : options_.dims) bind(name, value, "--dim");
  for (const ValueInfo* input : inputs) bind_from_shape(*input);
  for (const ValueInfo* input : inputs) bind_open(*input);
  bind_rest(inputs);
  std::vector<Input> result;
  for (const ValueInfo* input : inputs) {
    if (options_.absent.contains(std::string(input->name))) {
      result.push_back({input->name, Shape(), Value::Kind::nothing, {}});
      continue;
    }
    if (input->kind == ValueInfo::Kind::sequence) {
      result.push_back(sequence_of(*input));
      continue;
    }
    result.push_back(
        {input->name, shape_of(*input), Value::Kind::tensor, {}, input->elem_type == kStringType});
    const auto fixed = options_.values.find(std::string(input->name));
    if (fixed != options_.values.end() && fixed->second.type() != result.back().shape.type())
      fail("input {} is {}, its value is {}", quoted(input->name), to_string(result.back().shape),
           to_string(fixed->second.shape()));
  }
  return result;
}

}  // namespace

namespace {

// Whether an optional with this content has no value: no option gives it a value or a shape.
bool is_absent(const ValueInfo& held, const Options& options) {
  const std::string name(held.name), first = name + "#0";
  for (const std::string& said : {name, first})
    if (options.hints.contains(said) || options.values.contains(said) ||
        options.shapes.contains(said))
      return false;
  return !options.sequences.contains(name);
}

}  // namespace

std::vector<Input> bind_inputs(const proto::Graph& graph, const Options& options,
                               Imported& result) {
  // Before IR version 4 initialisers had to be listed as inputs too; they are constants here.
  std::set<std::string_view> constants, seen;
  for (const proto::Tensor& tensor : graph.initializers) constants.insert(tensor.name);
  std::vector<const ValueInfo*> inputs;
  std::deque<ValueInfo> inner;  // contents of optionals
  Options bound = options;
  for (const ValueInfo& input : graph.inputs) {
    if (input.name.empty()) fail("a graph input has no name");
    if (!seen.insert(input.name).second) fail("input {} appears twice", quoted(input.name));
    if (constants.contains(input.name)) continue;
    const ValueInfo* used = &input;
    if (input.kind == ValueInfo::Kind::optional && input.element != nullptr) {
      inner.push_back(*input.element);
      inner.back().name = input.name;
      used = &inner.back();
      if (is_absent(inner.back(), options)) bound.absent.emplace(input.name);
    }
    inputs.push_back(used);
  }
  return Binder(bound, result).run(inputs);
}

}  // namespace heddle::import
