// Commands of a vendor library: verified, saved, loaded, printed.
#include <gtest/gtest.h>

#include <functional>

#include "program/encode.h"
#include "program/text.h"
#include "program/verify.h"

namespace heddle::program {
namespace {

using tensor::Literal;
using tensor::Shape;
using tensor::Type;

// y = x w + b.
struct Example {
  Program p;
  BufferId x = add("x", BufferKind::input, 32), w = add("w", BufferKind::constant, 32),
           b = add("b", BufferKind::constant, 4), y = add("y", BufferKind::output, 16);

  Example() {
    p.name = "example";
    p.inputs = {{"x", "", Shape::array(Type::f32, {4, 8}), x, {}}};
    p.outputs = {{"y", "", Shape::array(Type::f32, {4, 4}), y, {}}};
    for (BufferId id : {x, y}) p.buffers[id.index()].number = 0;
    p.buffers[b.index()].offset_bytes = 128;
    p.constants[w.index()] = Literal(Shape::array(Type::f32, {8, 4}));
    p.constants[b.index()] = Literal(Shape::array(Type::f32, {4}));
    LibraryCall call;
    call.library = "onednn";
    call.operation = "product";
    call.arguments = {view(x, {4, 8}), view(w, {8, 4}), view(b, {4})};
    call.result = view(y, {4, 4});
    call.fixed = {1, 2};
    call.tasks = 3;
    call.flops = 256;
    p.commands = {call};
    p.command_info = {{"y", "dot, add"}};
  }
  BufferId add(const char* name, BufferKind kind, int64_t elems) {
    p.buffers.push_back({name, kind, 4 * elems});
    p.constants.emplace_back();
    return BufferId(p.buffers.size() - 1);
  }
  static View view(BufferId id, std::vector<int64_t> dims) {
    return {id, 0, Shape::array(Type::f32, std::move(dims))};
  }
  LibraryCall& call() { return std::get<LibraryCall>(p.commands[0]); }
};

TEST(library_call, IsVerifiedAndReadBack) {
  Example e;
  const Status status = verify(e.p);
  ASSERT_TRUE(status) << status.error().message;
  Result<Decoded> decoded = decode(encode(e.p));
  ASSERT_TRUE(decoded) << decoded.error().message;
  decoded->program.constants = e.p.constants;
  EXPECT_EQ(encode(decoded->program), encode(e.p));
  EXPECT_EQ(std::get<LibraryCall>(decoded->program.commands[0]).operation, "product");
  const std::string text = to_string(e.p);
  EXPECT_NE(text.find("library onednn product (b0:f32[4,8], b1:f32[8,4], b2:f32[4]) -> "
                      "b3:f32[4,4] in 3 tasks, fixed [1, 2]"),
            std::string::npos)
      << text;
}

TEST(library_call, FaultsAreFound) {
  struct Fault {
    const char* message;
    std::function<void(Example&)> damage;
  };
  const std::vector<Fault> faults = {
      {"no library", [](Example& e) { e.call().library.clear(); }},
      {"0 tasks", [](Example& e) { e.call().tasks = 0; }},
      {"1 arguments", [](Example& e) { e.call().arguments.resize(1); }},
      {"no argument 3", [](Example& e) { e.call().fixed = {3}; }},
      {"marked fixed", [](Example& e) { e.call().fixed = {0}; }},
      {"not plain f32",
       [](Example& e) { e.call().result.shape = Shape::array(Type::s32, {4, 4}); }},
      {"", [](Example& e) { e.call().arguments[0].offset_bytes = 64; }},
      {"", [](Example& e) { e.call().result = Example::view(e.x, {4, 4}); }},
  };
  for (const Fault& fault : faults) {
    Example e;
    fault.damage(e);
    const Status status = verify(e.p);
    ASSERT_FALSE(status) << fault.message;
    EXPECT_NE(status.error().message.find(fault.message), std::string::npos)
        << status.error().message;
  }
}

}  // namespace
}  // namespace heddle::program
