// An operation tree as text in which two readers of one program agree: attributes sorted, integers
// of any form alike, values numbered anew in each function, places and notes left out.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "import/mlir.h"

namespace heddle {

class MlirTree {
 public:
  explicit MlirTree(const import::MlirModule& module) : module_(module) {}

  std::string function(const import::MlirOp& op) {
    numbers_.clear();
    text_.clear();
    print(op, 0);
    return text_;
  }

 private:
  using Attr = import::MlirAttr;

  static std::string fields_of(const std::vector<std::pair<std::string, Attr>>& fields) {
    std::map<std::string, std::string> sorted;
    for (const auto& [name, attr] : fields)
      if (name != "arg_names" && name != "res_attrs" && !is_blank(name, attr))
        sorted[name] = attr_text(attr);
    std::string text;
    for (const auto& [name, value] : sorted) text += name + "=" + value + " ";
    return text;
  }

  // What a text may say or leave out: nothing of any argument, a channel of no type, the first
  // version of an interface, layouts of nothing, the usual accuracy.
  static bool is_blank(const std::string& name, const Attr& attr) {
    if (name == "type") return attr.is(Attr::Kind::integer) && attr.integer == 0;
    if (name == "api_version") return attr.integer == 1;
    if (name == "result_layouts") return attr.elements.empty();
    if (const Attr* mode = attr.field("mode"); mode != nullptr && name == "result_accuracy")
      return mode->elements.size() == 1 && mode->elements[0].text == "DEFAULT";
    return name == "arg_attrs" &&
           std::all_of(attr.elements.begin(), attr.elements.end(), [](const Attr& one) {
             return one.is(Attr::Kind::dictionary) && one.fields.empty();
           });
  }

  static std::string attr_text(const Attr& attr) {
    hlo::Ints values;
    const bool is_dense = attr.is(Attr::Kind::dense);
    if (import::integers_of(attr, &values) && (!is_dense || attr.type.dims.size() < 3))
      return fmt::format("[{}]", fmt::join(values, ","));
    // The reader of text keeps the groups of a mesh as text.
    if (attr.text == "replica_group_mesh_axes") return "other";
    std::string text = "(";
    switch (attr.kind) {
      case Attr::Kind::floating:
        return fmt::format("{:a}", attr.floating);
      case Attr::Kind::dense: {
        const auto literal = import::literal_of(attr);
        if (!literal) return literal.error().message;
        text += import::to_string(attr.type) + ":";
        const auto* bytes = static_cast<const unsigned char*>(literal->data());
        for (int64_t i = 0; i < literal->bytes(); ++i) text += fmt::format("{:02x}", bytes[i]);
        return text + ")";
      }
      case Attr::Kind::type:
        return import::to_string(attr.type);
      case Attr::Kind::unit:
        return "[1]";
      case Attr::Kind::other:
        return "other";
      default:
        break;
    }
    for (const Attr& element : attr.elements) text += attr_text(element) + " ";
    return text + attr.text + " " + fields_of(attr.fields) + ")";
  }

  std::string value(import::MlirValue value) {
    return fmt::format("%{}", numbers_.emplace(value, numbers_.size()).first->second);
  }

  void print(const import::MlirOp& op, int depth) {
    const std::string indent(static_cast<size_t>(depth) * 2, ' ');
    text_ += indent;
    for (const auto result : op.results)
      text_ += value(result) + ":" +
               import::to_string(module_.values[static_cast<size_t>(result)]) + " ";
    text_ += op.name + "(";
    for (const auto operand : op.operands) text_ += value(operand) + " ";
    text_ += ") " + fields_of(op.attrs) + "\n";
    for (const import::MlirRegion& region : op.regions)
      for (const import::MlirBlock& block : region.blocks) {
        text_ += indent + "^(";
        for (const auto argument : block.arguments)
          text_ += value(argument) + ":" +
                   import::to_string(module_.values[static_cast<size_t>(argument)]) + " ";
        text_ += ")\n";
        for (const import::MlirOp& inner : block.ops) print(inner, depth + 1);
      }
  }

  const import::MlirModule& module_;
  std::map<import::MlirValue, size_t> numbers_;
  std::string text_;
};

}  // namespace heddle
