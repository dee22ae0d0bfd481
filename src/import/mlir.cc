#include "import/mlir.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace heddle::import {
namespace {

template <typename List>
const MlirAttr* find(const List& list, std::string_view name) {
  for (const auto& [key, value] : list)
    if (key == name) return &value;
  return nullptr;
}

std::string list_text(const std::vector<MlirType>& types) {
  std::string text;
  for (const MlirType& type : types) text += (text.empty() ? "" : ", ") + to_string(type);
  return text;
}

std::string element_text(const MlirType& type) {
  const std::string name(tensor::type_name(type.element));
  if (!type.quantization) return name;
  return fmt::format("quantised {}:{}", name, tensor::type_name(type.quantization->expressed));
}

}  // namespace

bool MlirType::is_static() const {
  for (const int64_t dim : dims)
    if (dim == kDynamic) return false;
  return std::all_of(elements.begin(), elements.end(),
                     [](const MlirType& element) { return element.is_static(); });
}

std::string to_string(const MlirType& type) {
  std::string text;
  switch (type.kind) {
    case MlirType::Kind::tensor:
      for (const int64_t dim : type.dims)
        text += dim == MlirType::kDynamic ? "?x" : fmt::format("{}x", dim);
      return "tensor<" + text + element_text(type) + ">";
    case MlirType::Kind::scalar:
      return element_text(type);
    case MlirType::Kind::tuple:
      return "tuple<" + list_text(type.elements) + ">";
    case MlirType::Kind::future:
      return "future<" + list_text(type.elements) + ">";
    case MlirType::Kind::function:
      return "(" + list_text(type.elements) + ") -> (" + list_text(type.results) + ")";
    case MlirType::Kind::token:
      return "token";
    case MlirType::Kind::none:
      return "none";
    case MlirType::Kind::other:
      break;
  }
  return type.text;
}

const MlirAttr* MlirAttr::field(std::string_view name) const { return find(fields, name); }
const MlirAttr* MlirOp::attr(std::string_view name) const { return find(attrs, name); }

std::string place_of(const MlirOp& op) {
  if (op.line == 0) return fmt::format("byte {}", op.column);
  return fmt::format("{}:{}", op.line, op.column);
}

MlirModule unwrap_module(MlirModule module) {
  std::vector<MlirOp>& ops = module.body.ops;
  if (ops.size() != 1 || ops[0].name != "builtin.module") return module;
  MlirOp op = std::move(ops[0]);
  if (const MlirAttr* name = op.attr("sym_name")) module.name = name->text;
  module.attrs = std::move(op.attrs);
  MlirBlock body;
  if (!op.regions.empty() && !op.regions[0].blocks.empty())
    body = std::move(op.regions[0].blocks[0]);
  module.body = std::move(body);
  return module;
}

bool integers_of(const MlirAttr& attr, hlo::Ints* values, int64_t most) {
  values->clear();
  switch (attr.kind) {
    case MlirAttr::Kind::integer:
    case MlirAttr::Kind::boolean:
      values->push_back(attr.integer);
      return true;
    case MlirAttr::Kind::array:
      for (const MlirAttr& element : attr.elements) {
        if (!element.is(MlirAttr::Kind::integer) && !element.is(MlirAttr::Kind::boolean))
          return false;
        values->push_back(element.integer);
      }
      return true;
    case MlirAttr::Kind::dense: {
      const tensor::Type type = attr.literal->type();
      if (!tensor::is_integer(type) && type != tensor::Type::pred) return false;
      const auto count = tensor::checked_product(attr.type.dims);
      if (!count || *count > most) return false;
      const bool splat = attr.literal->elems() == 1;
      for (int64_t i = 0; i < *count; ++i) values->push_back(attr.literal->get_s64(splat ? 0 : i));
      return true;
    }
    default:
      return false;
  }
}

MlirType type_of(MlirType::Kind kind, std::string text) {
  MlirType type;
  type.kind = kind;
  type.text = std::move(text);
  return type;
}

MlirType scalar_type(tensor::Type element) {
  MlirType type = type_of(MlirType::Kind::scalar);
  type.element = element;
  return type;
}

MlirAttr attr_of(MlirAttr::Kind kind, std::string text) {
  MlirAttr attr;
  attr.kind = kind;
  attr.text = std::move(text);
  return attr;
}

MlirAttr integer_attr(int64_t value) {
  MlirAttr attr = attr_of(MlirAttr::Kind::integer);
  attr.integer = value;
  return attr;
}

Result<tensor::Literal> literal_of(const MlirAttr& attr) {
  const tensor::Shape shape = tensor::Shape::array(attr.literal->type(), attr.type.dims);
  HEDDLE_ASSIGN_OR_RETURN(tensor::Literal value, tensor::Literal::make(shape));
  const auto bytes = static_cast<size_t>(value.bytes());
  if (bytes == 0) return value;
  const auto given = static_cast<size_t>(attr.literal->bytes());
  auto* to = static_cast<char*>(value.mutable_data());
  std::memcpy(to, attr.literal->data(), std::min(given, bytes));
  for (size_t done = given; done < bytes;) {  // a splat: doubled until the literal is full
    const size_t more = std::min(done, bytes - done);
    std::memcpy(to + done, to, more);
    done += more;
  }
  return value;
}

}  // namespace heddle::import
