#include "import/onnx_proto.h"

#include "import/failure.h"
#include "import/onnx_test_util.h"

namespace heddle::import {
namespace {

using ::testing::HasSubstr;
using namespace testing;  // NOLINT

std::string decode_error(const std::string& bytes) {
  try {
    proto::decode_model(bytes, 1000);
  } catch (const Failure& failure) {
    return failure.error.message;
  }
  return "";
}

TEST(OnnxProto, ReadsEveryPartOfAModel) {
  Model model;
  model.inputs = {value("x", kFloat, {"batch", "3", ""})};
  model.nodes = {node(
      "Relu", {"x", ""}, {"y"},
      {attr("a", int64_t{3}), attr("b", 0.5), attr("c", std::string("s")), attr("d", Ints{1, 2})},
      "some.domain", "n")};
  model.constants = {ints_tensor("w", {4, 5})};
  model.outputs = {"y"};
  model.functions = {Message().text(1, "f").text(4, "a").text(5, "b").text(10, "d")};
  const std::string bytes = model.bytes();
  const proto::Model read = proto::decode_model(bytes, 1000);
  EXPECT_EQ(read.ir_version, 8);
  ASSERT_EQ(read.opsets.size(), 1u);
  EXPECT_EQ(read.opsets[0].version, 17);
  const proto::Graph& graph = read.graph;
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.nodes[0].op_type, "Relu");
  EXPECT_EQ(graph.nodes[0].domain, "some.domain");
  EXPECT_EQ(graph.nodes[0].inputs.size(), 2u);
  ASSERT_EQ(graph.nodes[0].attributes.size(), 4u);
  EXPECT_EQ(graph.nodes[0].attributes[0].i, 3);
  EXPECT_EQ(graph.nodes[0].attributes[1].f, 0.5f);
  EXPECT_EQ(graph.nodes[0].attributes[2].s, "s");
  EXPECT_EQ(graph.nodes[0].attributes[3].ints, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(graph.nodes[0].attributes[3].type, proto::AttrType::ints);
  ASSERT_EQ(graph.inputs.size(), 1u);
  using Kind = proto::DimInfo::Kind;
  ASSERT_EQ(graph.inputs[0].dims.size(), 3u);
  EXPECT_EQ(graph.inputs[0].dims[0].symbol, "batch");
  EXPECT_EQ(graph.inputs[0].dims[1].value, 3);
  EXPECT_EQ(graph.inputs[0].dims[2].kind, Kind::unknown);
  ASSERT_EQ(graph.initializers.size(), 1u);
  EXPECT_EQ(graph.initializers[0].raw_data.size(), 16u);
  ASSERT_EQ(read.functions.size(), 1u);
  EXPECT_EQ(read.functions[0].name, "f");
}

TEST(OnnxProto, PackedAndLooseNumbersAreOne) {
  std::string packed = Message().text(1, "p").bytes();
  const int64_t values[] = {7, -1};
  protozero::pbf_writer(packed).add_packed_int64(8, std::begin(values), std::end(values));
  const std::string bytes =
      Message().message(7, Message().message(1, Message().text(4, "X").text(5, packed))).bytes();
  const proto::Model model = proto::decode_model(bytes, 10);
  EXPECT_EQ(model.graph.nodes[0].attributes[0].ints, (std::vector<int64_t>{7, -1}));
  EXPECT_EQ(model.graph.nodes[0].attributes[0].type, proto::AttrType::ints);
}

TEST(OnnxProto, DamageIsNamed) {
  EXPECT_THAT(decode_error(""), HasSubstr("empty"));
  EXPECT_THAT(decode_error("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
              HasSubstr("more than 10 bytes"));
  EXPECT_THAT(decode_error("\x3a\x7f"), HasSubstr("truncated"));
  EXPECT_THAT(decode_error("\x0b"), HasSubstr("unknown wire type"));
  EXPECT_THAT(decode_error("\x0a\x01\x41"), HasSubstr("field 1 has wire type 2"));
  // A length of 2^32 + 1 must not be read as 1.
  EXPECT_THAT(decode_error(std::string("\x3a\x81\x80\x80\x80\x10\x08", 7)), HasSubstr("truncated"));
  EXPECT_THAT(decode_error(Message().text(7, "").text(7, "").bytes()), HasSubstr("two graphs"));
}

TEST(OnnxProto, NestingAndNodesAreBounded) {
  // A graph in an attribute of a node of a graph, many times.
  Message graph;
  for (int depth = 0; depth < 60; ++depth)
    graph = Message().message(1, node("If", {"c"}, {"y"}, {graph_attr("then_branch", graph)}));
  EXPECT_THAT(decode_error(Message().message(7, graph).bytes()), HasSubstr("nested more than"));
  Message many;
  for (int i = 0; i < 1001; ++i) many.text(1, "");
  EXPECT_THAT(decode_error(Message().message(7, many).bytes()), HasSubstr("more than 1000 nodes"));
}

}  // namespace
}  // namespace heddle::import
