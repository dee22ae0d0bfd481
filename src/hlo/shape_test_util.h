// Shape inference in text, for tests: infer(Opcode::add, {"f32[2]", "f32[2]"}) == "f32[2]"; errors
// read "error: <message>".
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "hlo/shape_inference.h"
#include "hlo/text.h"

namespace heddle::hlo {

inline Shape shape_of(const std::string& text) {
  Result<Shape> shape = parse_shape(text);
  HEDDLE_CHECK(shape, "{}: {}", text, shape ? "" : shape.error().message);
  return *shape;
}

inline std::string infer_shapes(Opcode opcode, const std::vector<Shape>& operands,
                                const Attrs& attrs = NoAttrs{},
                                const std::vector<Computation*>& called = {},
                                const std::string& declared = "") {
  std::vector<const Shape*> pointers;
  for (const Shape& shape : operands) pointers.push_back(&shape);
  Shape given;
  if (!declared.empty()) given = shape_of(declared);
  Result<Shape> shape =
      infer_shape(opcode, pointers, attrs, called, declared.empty() ? nullptr : &given);
  return shape ? to_string(*shape, /*layouts=*/false) : "error: " + shape.error().message;
}

inline std::string infer(Opcode opcode, const std::vector<std::string>& operands,
                         const Attrs& attrs = NoAttrs{},
                         const std::vector<Computation*>& called = {},
                         const std::string& declared = "") {
  std::vector<Shape> shapes;
  for (const std::string& operand : operands) shapes.push_back(shape_of(operand));
  return infer_shapes(opcode, shapes, attrs, called, declared);
}

inline std::string infer_as(const std::string& declared, Opcode opcode,
                            const std::vector<std::string>& operands,
                            const Attrs& attrs = NoAttrs{},
                            const std::vector<Computation*>& called = {}) {
  return infer(opcode, operands, attrs, called, declared);
}

// Computations of a given signature; the body is a custom call.
class Functions {
 public:
  Computation* operator()(const std::vector<std::string>& parameters, const std::string& result) {
    Computation* c = module_.add_computation("f");
    std::vector<Instr*> operands;
    for (const std::string& parameter : parameters) {
      const auto number = static_cast<int64_t>(operands.size());
      operands.push_back(
          c->add(Opcode::parameter, shape_of(parameter), {}, ParameterAttrs{number}));
    }
    c->set_root(c->add(Opcode::custom_call, shape_of(result), operands, CustomCallAttrs{"f"}));
    return c;
  }

 private:
  Module module_{"functions"};
};

}  // namespace heddle::hlo
