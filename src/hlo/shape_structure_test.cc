#include "hlo/shape_test_util.h"

namespace heddle::hlo {
namespace {

TEST(ShapeStructure, CallAndFusion) {
  Functions f;
  Computation* c = f({"f32[2]", "s32[]"}, "(f32[3], pred[])");
  EXPECT_EQ(infer(Opcode::call, {"f32[2]", "s32[]"}, CallAttrs{}, {c}), "(f32[3], pred[])");
  EXPECT_EQ(infer_as("(f32[3], pred[])", Opcode::fusion, {"f32[2]", "s32[]"}, FusionAttrs{}, {c}),
            "(f32[3], pred[])");
  EXPECT_EQ(
      infer(Opcode::call, {"f32[2]"}, CallAttrs{}, {c}),
      "error: call: f is (f32[2], s32[]) -> (f32[3], pred[]), wanted (f32[2]) -> (f32[3], pred[])");
  EXPECT_EQ(infer_as("f32[3]", Opcode::fusion, {"f32[2]", "s32[]"}, FusionAttrs{}, {c}),
            "error: fusion: declared f32[3], but its operands give (f32[3], pred[])");
}

TEST(ShapeStructure, While) {
  Functions f;
  Computation* condition = f({"(s32[], f32[2])"}, "pred[]");
  Computation* body = f({"(s32[], f32[2])"}, "(s32[], f32[2])");
  EXPECT_EQ(infer(Opcode::while_, {"(s32[], f32[2])"}, NoAttrs{}, {condition, body}),
            "(s32[], f32[2])");
  EXPECT_EQ(infer(Opcode::while_, {"(s32[], f32[2])"}, NoAttrs{}, {body, body}),
            "error: while: f.1 is ((s32[], f32[2])) -> (s32[], f32[2]), wanted ((s32[], f32[2])) "
            "-> pred[]");
  EXPECT_EQ(infer(Opcode::while_, {"(s32[], f32[2])"}, NoAttrs{}, {condition}),
            "error: while: 1 called computations, wanted 2");
  EXPECT_EQ(
      infer(Opcode::while_, {"s32[]"}, NoAttrs{}, {f({"s32[]"}, "pred[]"), f({"s32[]"}, "s64[]")}),
      "error: while: f.3 is (s32[]) -> s64[], wanted (s32[]) -> s32[]");
}

TEST(ShapeStructure, Conditional) {
  Functions f;
  Computation* a = f({"f32[2]"}, "f32[]");
  Computation* b = f({"s32[]"}, "f32[]");
  EXPECT_EQ(infer(Opcode::conditional, {"pred[]", "f32[2]", "s32[]"}, NoAttrs{}, {a, b}), "f32[]");
  EXPECT_EQ(infer(Opcode::conditional, {"s32[]", "f32[2]", "s32[]", "s32[]"}, NoAttrs{}, {a, b, b}),
            "f32[]");
  EXPECT_EQ(
      infer(Opcode::conditional, {"pred[]", "f32[2]", "s32[]", "s32[]"}, NoAttrs{}, {a, b, b}),
      "error: conditional: operand 0 is pred[] for 3 branches; pred[] and two, or s32[]");
  EXPECT_EQ(infer(Opcode::conditional, {"s32[]", "f32[2]"}, NoAttrs{}, {a, b}),
            "error: conditional: 2 operands, wanted the selector and one for each of 2 branches");
  EXPECT_EQ(infer(Opcode::conditional, {"pred[]", "s32[]", "s32[]"}, NoAttrs{},
                  {b, f({"s32[]"}, "s32[]")}),
            "error: conditional: f.2 is (s32[]) -> s32[], wanted (s32[]) -> f32[]");
}

TEST(ShapeStructure, Tuples) {
  EXPECT_EQ(infer(Opcode::tuple, {}), "()");
  EXPECT_EQ(infer(Opcode::tuple, {"f32[2]", "(s32[], token[])"}), "(f32[2], (s32[], token[]))");
  EXPECT_EQ(infer(Opcode::get_tuple_element, {"(f32[2], s32[])"}, TupleIndexAttrs{1}), "s32[]");
  EXPECT_EQ(infer(Opcode::get_tuple_element, {"(f32[2])"}, TupleIndexAttrs{1}),
            "error: get-tuple-element: index 1 of (f32[2])");
  EXPECT_EQ(infer(Opcode::get_tuple_element, {"f32[2]"}, TupleIndexAttrs{0}),
            "error: get-tuple-element: operand 0 is f32[2], wanted a tuple of 0 or more");
}

TEST(ShapeStructure, ParameterAndConstant) {
  EXPECT_EQ(infer_as("f32[<=2]", Opcode::parameter, {}, ParameterAttrs{0}), "f32[<=2]");
  EXPECT_EQ(infer_as("f32[2]", Opcode::parameter, {}, ParameterAttrs{-1}),
            "error: parameter: number -1 is negative");
  EXPECT_EQ(infer(Opcode::parameter, {}, ParameterAttrs{0}),
            "error: parameter: the shape cannot be inferred and must be given");
  const ConstantAttrs two{Literal(shape_of("f32[2]"))};
  EXPECT_EQ(infer(Opcode::constant, {}, two), "f32[2]");
  EXPECT_EQ(infer_as("f32[3]", Opcode::constant, {}, two),
            "error: constant: declared f32[3], but its operands give f32[2]");
}

TEST(ShapeStructure, PassedOn) {
  for (Opcode op : {Opcode::copy, Opcode::opt_barrier})
    EXPECT_EQ(infer(op, {"f32[<=2]"}), "f32[<=2]") << opcode_text(op);
  EXPECT_EQ(infer(Opcode::domain, {"(f32[2])"}, TextAttrs{}), "(f32[2])");
  EXPECT_EQ(infer(Opcode::add_dependency, {"f32[2]", "token[]"}), "f32[2]");
  EXPECT_EQ(infer(Opcode::add_dependency, {"f32[2]", "f32[2]"}),
            "error: add-dependency: operand 1 is f32[2], wanted a token");
  EXPECT_EQ(infer(Opcode::after_all, {"token[]", "token[]"}), "token[]");
  EXPECT_EQ(infer(Opcode::after_all, {"f32[]"}),
            "error: after-all: operand 0 is f32[], wanted a token");
}

TEST(ShapeStructure, Asynchronous) {
  Functions f;
  Computation* c = f({"f32[10]"}, "f32[20]");
  const std::string start = "((f32[10]), f32[20], s32[])";
  EXPECT_EQ(infer_as(start, Opcode::async_start, {"f32[10]"}, AsyncAttrs{}, {c}), start);
  EXPECT_EQ(infer_as(start, Opcode::async_update, {start}, AsyncAttrs{}), start);
  EXPECT_EQ(infer_as("f32[20]", Opcode::async_done, {start}, AsyncAttrs{}, {c}), "f32[20]");
  EXPECT_EQ(infer_as("((f32[10]), f32[21])", Opcode::async_start, {"f32[10]"}, AsyncAttrs{}, {c}),
            "error: async-start: declared ((f32[10]), f32[21]), element 1 must be f32[20]");
  EXPECT_EQ(infer(Opcode::async_done, {"f32[20]"}, AsyncAttrs{}),
            "error: async-done: operand 0 is f32[20], wanted a tuple of 2 or more");
  EXPECT_EQ(infer(Opcode::copy_start, {"f32[2]"}, CopyStartAttrs{}), "(f32[2], f32[2], u32[])");
  EXPECT_EQ(infer_as("(f32[3], f32[2], u32[])", Opcode::copy_start, {"f32[2]"}, CopyStartAttrs{}),
            "error: copy-start: declared (f32[3], f32[2], u32[]), element 0 must be f32[2]");
  EXPECT_EQ(infer(Opcode::copy_done, {"(f32[2], f32[2], u32[])"}), "f32[2]");
}

TEST(ShapeStructure, FeedsAndCustomCalls) {
  EXPECT_EQ(infer_as("(f32[2], token[])", Opcode::infeed, {"token[]"}, TextAttrs{}),
            "(f32[2], token[])");
  EXPECT_EQ(infer_as("(f32[2], f32[2])", Opcode::infeed, {"token[]"}, TextAttrs{}),
            "error: infeed: declared (f32[2], f32[2]), element 1 must be token[]");
  EXPECT_EQ(infer(Opcode::outfeed, {"f32[2]", "token[]"}, TextAttrs{}), "token[]");
  EXPECT_EQ(infer(Opcode::outfeed, {"f32[2]", "f32[2]"}, TextAttrs{}),
            "error: outfeed: operand 1 is f32[2], wanted a token");
  EXPECT_EQ(infer_as("(f32[7], opaque[])", Opcode::custom_call, {"f32[2]"}, CustomCallAttrs{"f"}),
            "(f32[7], opaque[])");
  EXPECT_EQ(infer(Opcode::custom_call, {"f32[2]"}, CustomCallAttrs{"f"}),
            "error: custom-call: the shape cannot be inferred and must be given");
}

TEST(ShapeStructure, RandomNumbers) {
  EXPECT_EQ(infer_as("f32[2,3]", Opcode::rng, {"f32[]", "f32[]"}, RngAttrs{true}), "f32[2,3]");
  EXPECT_EQ(infer_as("s32[2]", Opcode::rng, {"s32[]", "s32[]"}, RngAttrs{true}),
            "error: rng: operand 0 is s32[], wanted a float type");
  EXPECT_EQ(infer_as("f64[2]", Opcode::rng, {"f32[]", "f32[]"}, RngAttrs{}),
            "error: rng: declared f64[2], but its operands give f32[2]");
  const std::string pair = "(u64[2], u32[4])";
  EXPECT_EQ(infer_as(pair, Opcode::rng_bit_generator, {"u64[2]"}, RngBitGeneratorAttrs{}), pair);
  EXPECT_EQ(infer_as(pair, Opcode::rng_bit_generator, {"u64[3]"}, RngBitGeneratorAttrs{}),
            "error: rng-bit-generator: declared (u64[2], u32[4]), element 0 must be u64[3]");
  EXPECT_EQ(
      infer_as("(u64[2], f32[4])", Opcode::rng_bit_generator, {"u64[2]"}, RngBitGeneratorAttrs{}),
      "error: rng-bit-generator: declared (u64[2], f32[4]), wanted the state and integers");
  EXPECT_EQ(infer_as("u64[2]", Opcode::rng_get_and_update_state, {}, RngStateAttrs{}), "u64[2]");
}

TEST(ShapeCollective, SameShape) {
  Functions f;
  Computation* add = f({"f32[]", "f32[]"}, "f32[]");
  EXPECT_EQ(infer(Opcode::all_reduce, {"f32[2]"}, CollectiveAttrs{}, {add}), "f32[2]");
  EXPECT_EQ(infer(Opcode::all_reduce, {"f32[2]", "f32[3]"}, CollectiveAttrs{}, {add}),
            "(f32[2], f32[3])");
  EXPECT_EQ(infer(Opcode::all_reduce, {"f32[2]"}, CollectiveAttrs{}, {f({"f32[2]"}, "f32[]")}),
            "error: all-reduce: f.1 is (f32[2]) -> f32[], wanted a function of two scalars");
  EXPECT_EQ(infer(Opcode::all_reduce_start, {"f32[2]"}, CollectiveAttrs{}, {add}), "f32[2]");
  EXPECT_EQ(infer(Opcode::all_reduce_done, {"f32[2]"}, CollectiveAttrs{}), "f32[2]");
  EXPECT_EQ(infer(Opcode::collective_broadcast, {"f32[2]"}, CollectiveAttrs{}), "f32[2]");
  EXPECT_EQ(infer(Opcode::collective_permute, {"f32[2]"}, CollectiveAttrs{}), "f32[2]");
  EXPECT_EQ(infer_as("f32[3]", Opcode::all_reduce, {"f32[2]"}, CollectiveAttrs{}, {add}),
            "error: all-reduce: declared f32[3], but its operands give f32[2]");
}

TEST(ShapeCollective, GrowingAndShrinking) {
  Functions f;
  Computation* add = f({"f32[]", "f32[]"}, "f32[]");
  CollectiveAttrs axis1;
  axis1.dimensions = {1};
  EXPECT_EQ(infer_as("f32[2,12]", Opcode::all_gather, {"f32[2,3]"}, axis1), "f32[2,12]");
  EXPECT_EQ(infer_as("(f32[2,6], s32[1,2])", Opcode::all_gather, {"f32[2,3]", "s32[1,1]"}, axis1),
            "(f32[2,6], s32[1,2])");
  EXPECT_EQ(infer_as("f32[2,11]", Opcode::all_gather, {"f32[2,3]"}, axis1),
            "error: all-gather: declared f32[2,11] for operand 0 of f32[2,3]: only axis 1 may "
            "grow, to a multiple");
  EXPECT_EQ(infer_as("f32[4,3]", Opcode::all_gather, {"f32[2,3]"}, axis1),
            "error: all-gather: declared f32[4,3] for operand 0 of f32[2,3]: only axis 1 may "
            "grow, to a multiple");
  EXPECT_EQ(infer_as("f32[2,3]", Opcode::reduce_scatter, {"f32[2,12]"}, axis1, {add}), "f32[2,3]");
  EXPECT_EQ(infer_as("f32[2,5]", Opcode::reduce_scatter, {"f32[2,12]"}, axis1, {add}),
            "error: reduce-scatter: declared f32[2,5] for operand 0 of f32[2,12]: only axis 1 may "
            "shrink, by a divisor");
  EXPECT_EQ(infer_as("f32[2,12]", Opcode::all_gather, {"f32[2,3]"}, CollectiveAttrs{}),
            "error: all-gather: dimensions={} must name one dimension");
  const std::string start = "(f32[2,3], f32[2,12])";
  EXPECT_EQ(infer_as(start, Opcode::all_gather_start, {"f32[2,3]"}, axis1), start);
  EXPECT_EQ(infer(Opcode::all_gather_done, {start}, CollectiveAttrs{}), "f32[2,12]");
  EXPECT_EQ(infer(Opcode::all_gather_done, {"f32[2]"}, CollectiveAttrs{}),
            "error: all-gather-done: operand 0 is f32[2], wanted the tuple of its start");
}

TEST(ShapeCollective, AllToAll) {
  CollectiveAttrs split;
  split.dimensions = {0};
  EXPECT_EQ(infer(Opcode::all_to_all, {"f32[4,2]"}, split), "f32[4,2]");
  EXPECT_EQ(infer(Opcode::all_to_all, {"f32[2]", "f32[2]"}, CollectiveAttrs{}), "(f32[2], f32[2])");
  EXPECT_EQ(infer_as("(f32[2])", Opcode::all_to_all, {"f32[2]"}, CollectiveAttrs{}), "(f32[2])");
  split.dimensions = {2};
  EXPECT_EQ(infer(Opcode::all_to_all, {"f32[4,2]"}, split),
            "error: all-to-all: dimensions names dimension 2 of a rank 2 array");
  const std::vector<std::string> ragged{"f32[6]", "f32[8]", "s32[3]", "s32[3]", "s32[3]", "s32[3]"};
  EXPECT_EQ(infer(Opcode::ragged_all_to_all, ragged, CollectiveAttrs{}), "f32[8]");
  EXPECT_EQ(infer(Opcode::ragged_all_to_all, {"f32[6]"}, CollectiveAttrs{}),
            "error: ragged-all-to-all: 1 operands; wanted input, output and four arrays of offsets "
            "and sizes");
}

TEST(ShapeCollective, SendAndReceive) {
  EXPECT_EQ(infer(Opcode::send, {"f32[2]", "token[]"}, ChannelAttrs{}), "(f32[2], u32[], token[])");
  EXPECT_EQ(
      infer_as("(f32[3], u32[], token[])", Opcode::send, {"f32[2]", "token[]"}, ChannelAttrs{}),
      "error: send: declared (f32[3], u32[], token[]) for operand 0 of f32[2]");
  EXPECT_EQ(infer(Opcode::send_done, {"(f32[2], u32[], token[])"}, ChannelAttrs{}), "token[]");
  EXPECT_EQ(infer_as("(f32[2], u32[], token[])", Opcode::recv, {"token[]"}, ChannelAttrs{}),
            "(f32[2], u32[], token[])");
  EXPECT_EQ(infer(Opcode::recv, {"token[]"}, ChannelAttrs{}),
            "error: recv: the shape cannot be inferred and must be given");
  EXPECT_EQ(infer(Opcode::recv_done, {"(f32[2], u32[], token[])"}, ChannelAttrs{}),
            "(f32[2], token[])");
  EXPECT_EQ(infer(Opcode::recv_done, {"token[]"}, ChannelAttrs{}),
            "error: recv-done: operand 0 is token[], wanted the tuple of recv");
  EXPECT_EQ(infer(Opcode::partition_id, {}), "u32[]");
  EXPECT_EQ(infer_as("s32[]", Opcode::replica_id, {}),
            "error: replica-id: declared s32[], but its operands give u32[]");
}

}  // namespace
}  // namespace heddle::hlo
