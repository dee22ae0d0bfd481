// What a report's document is made of, without a model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "dataflow.h"
#include "layers.h"
#include "line_diff.h"
#include "page_text.h"
#include "page_texts.h"
#include "repeats.h"
#include "roofs.h"

namespace heddle::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> letters(const std::string& text) {
  std::vector<std::string> list;
  for (const char c : text) list.emplace_back(1, c);
  return list;
}

std::vector<Repeat> repeats(const std::string& signs, const std::string& scopes = "") {
  return repeats_of(letters(signs),
                    letters(scopes.empty() ? std::string(signs.size(), '.') : scopes));
}

TEST(repeats, FoldWhatSavesMost) {
  EXPECT_THAT(repeats("xabcabcabcy"), ElementsAre(Repeat{1, 3, 3}));
  EXPECT_THAT(repeats("aaaa"), ElementsAre(Repeat{0, 1, 4}));
  // Rather the long stretch twice than the pairs inside of it.
  EXPECT_THAT(repeats("aabcdaabcd"), ElementsAre(Repeat{0, 5, 2}));
  EXPECT_THAT(repeats("ababxcdcdcd"), ElementsAre(Repeat{0, 2, 2}, Repeat{5, 2, 3}));
  EXPECT_THAT(repeats("abcd"), IsEmpty());
  EXPECT_THAT(repeats(""), IsEmpty());
}

TEST(repeats, BeginWhereScopesChange) {
  // "cab" and "bca" repeat as well: layers begin at "a".
  EXPECT_THAT(repeats("cabcabca", "0111222x"), ElementsAre(Repeat{1, 3, 2}));
}

TEST(layers, FromNames) {
  EXPECT_EQ(layer_of_node("/model/encoder/layer.0/attention/MatMul"), "/model/encoder/layer.0");
  EXPECT_EQ(layer_of_node("block.3/step.2/dot"), "block.3");
  EXPECT_EQ(layer_of_node("jit(f)/jit(main)/dot_general"), "jit(f)/jit(main)");
  EXPECT_EQ(layer_of_node("Conv_12"), "Conv_12");
  EXPECT_EQ(layer_of_node(""), "");
  EXPECT_EQ(layer_of_node("/x"), "/x");
}

TEST(layers, OfCommandsWithoutNames) {
  const CommandLayers layers =
      layers_of({"a", "b", "c", "d", "e"}, {"", "", "", "", "n/1/x"}, {{0, 2, 2}});
  EXPECT_THAT(layers.names, ElementsAre("part 1 of 2", "part 2 of 2", "n/1"));
  EXPECT_THAT(layers.of, ElementsAre(0, 0, 1, 1, 2));
}

TEST(line_diff, ShowsWhatCameAndWent) {
  const LineDiff diff = diff_of("a\nb\nc\nd\n", "a\nx\nc\nd\ne\n", 100);
  EXPECT_EQ(diff.text, "  a\n- b\n+ x\n…\n  d\n+ e\n");
  EXPECT_EQ(diff.gone, 1u);
  EXPECT_EQ(diff.come, 2u);
  EXPECT_EQ(diff_of("a\na\n", "a\na\n", 100).text, "");
  // Lines that are not unique are held by their neighbours.
  EXPECT_EQ(diff_of("}\na\n}\n", "}\nb\n}\n", 100).text, "  }\n- a\n+ b\n");
  EXPECT_EQ(diff_of("", "a\n", 100).come, 1u);
  EXPECT_EQ(diff_of("a\n", "", 100).gone, 1u);
}

TEST(line_diff, IsBounded) {
  std::string many;
  for (int i = 0; i < 1000; ++i) many += std::to_string(i) + "\n";
  const LineDiff diff = diff_of("", many, 10);
  EXPECT_EQ(diff.come, 1000u);
  EXPECT_THAT(diff.text, HasSubstr("9\n… and 990 lines more\n"));
  EXPECT_LT(diff_of("", std::string(5000, 'x'), 10).text.size(), kMostColumns + 10);
}

TEST(page_texts, AreThereOnce) {
  PageTexts texts;
  EXPECT_EQ(texts.add("a"), 0);
  EXPECT_EQ(texts.add("b"), 1);
  EXPECT_EQ(texts.add("a"), 0);
  EXPECT_EQ(texts.add(""), -1);
  EXPECT_EQ(texts.plain().dump(), R"(["a","b"])");
  EXPECT_EQ(texts.places().dump(), "[0]");
  // zlib's own words for ["a","b"], whatever its version: a header for the best compression.
  ASSERT_EQ(texts.packed().size(), 1u);
  EXPECT_THAT(texts.packed()[0], testing::StartsWith("eN"));
  const std::string large(300 << 10, 'x');
  texts.add(large);
  texts.add("c");
  EXPECT_EQ(texts.places().dump(), "[0,3]");
  EXPECT_EQ(texts.packed().size(), 2u);
  EXPECT_LT(texts.packed()[0].size(), 3000u);
}

TEST(page_text, NothingOfTheModelIsMarkup) {
  EXPECT_EQ(escaped("<b a=\"x\">&\x01"), "&lt;b a=&quot;x&quot;&gt;&amp;");
  EXPECT_THAT(script_text({{"name", "</script>\xff"}}), Not(HasSubstr("<")));
}

TEST(roofs, AreRaisedByWhatIsFaster) {
  const Roofs roofs = roofs_of(100, 10, {{2'000'000, 1000, 0.01}, {10, 10, 0}});
  EXPECT_TRUE(roofs.raised);
  EXPECT_DOUBLE_EQ(roofs.flops_per_ns, 200);
  EXPECT_DOUBLE_EQ(roofs.bytes_per_ns, 10);
  EXPECT_DOUBLE_EQ(roofline_share({2'000'000, 1000, 0.01}, roofs), 1);
  EXPECT_DOUBLE_EQ(roofline_share({0, 1'000'000, 1}, roofs), 0.1);
  EXPECT_FALSE(roofs_of(0, 0, {{1, 1, 1}}).raised);
}

// A program of copies: in -> t -> out, with a constant behind a once buffer.
program::Program copies() {
  program::Program program;
  const tensor::Shape shape = tensor::Shape::array(tensor::Type::f32, {4});
  const auto buffer = [&](const char* name, program::BufferKind kind) {
    program.buffers.push_back({name, kind, 16});
    return program::View{program::BufferId(program.buffers.size() - 1), 0, shape};
  };
  const program::View in = buffer("in", program::BufferKind::input),
                      t = buffer("t", program::BufferKind::temporary);
  const program::View out = buffer("out", program::BufferKind::output),
                      w = buffer("w", program::BufferKind::constant);
  const program::View o = buffer("o", program::BufferKind::once),
                      p = buffer("p", program::BufferKind::once);
  program.once = {program::Copy{w, o}, program::Copy{o, p}};
  program.commands = {program::Copy{in, t}, program::Copy{t, out}, program::Copy{p, t},
                      program::Copy{t, out}};
  program.once_info.resize(2);
  program.command_info.resize(4);
  return program;
}

TEST(dataflow, FollowsBuffers) {
  const program::Program program = copies();
  const Dataflow flow = dataflow_of(program);
  ASSERT_EQ(flow.flows.size(), 2u);  // the second writing of t hides the first
  EXPECT_EQ(std::pair(flow.flows[0].from, flow.flows[0].to), std::pair(size_t{0}, size_t{1}));
  EXPECT_EQ(std::pair(flow.flows[1].from, flow.flows[1].to), std::pair(size_t{2}, size_t{3}));
  EXPECT_EQ(flow.flows[1].bytes, 16);
  EXPECT_THAT(flow.given[0], ElementsAre(program::BufferId(0)));
  EXPECT_THAT(flow.given[1], IsEmpty());
  EXPECT_EQ(flow.last_writer[2], 3);
  EXPECT_THAT(sources_of_once(program)[5], ElementsAre(program::BufferId(3)));
}

}  // namespace
}  // namespace heddle::tools
