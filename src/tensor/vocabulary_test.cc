#include "tensor/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "tensor/npz.h"
#include "tensor/utf8.h"

namespace heddle::tensor {
namespace {

using ::testing::ElementsAre;

TEST(Vocabulary, EqualStringsHaveEqualIds) {
  Vocabulary vocabulary;
  EXPECT_EQ(vocabulary.id(""), 0u);
  const uint32_t red = vocabulary.id("red"), green = vocabulary.id("gr\xc3\xbcn");
  EXPECT_EQ(red, 1u);
  EXPECT_EQ(green, 2u);
  EXPECT_EQ(vocabulary.id(std::string("red")), red);
  EXPECT_EQ(vocabulary.text(green), "gr\xc3\xbcn");
  EXPECT_EQ(vocabulary.text(77), "");
  EXPECT_EQ(vocabulary.size(), 3);
}

TEST(Vocabulary, ManyThreadsAddToIt) {
  Vocabulary vocabulary;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        const std::string text = std::to_string(i);
        EXPECT_EQ(vocabulary.text(vocabulary.id(text)), text);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(vocabulary.size(), 1001);
}

TEST(Utf8, CodePointsAndBack) {
  const std::string text = "a\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80";
  EXPECT_THAT(code_points(text), ElementsAre('a', 0xfc, 0x20ac, 0x1f600));
  EXPECT_EQ(utf8(code_points(text)), text);
  // Invalid UTF-8 is decoded as itself, byte by byte.
  EXPECT_THAT(code_points("\x80\xc3"), ElementsAre(0x80, 0xc3));
  EXPECT_THAT(code_points("\xe2\x82"), ElementsAre(0xe2, 0x82));
}

TEST(Npz, StringsAreArraysOfCodePoints) {
  Vocabulary vocabulary;
  Literal ids(Shape::array(kTextType, {2, 2}));
  const std::string words[] = {"red", "gr\xc3\xbcn", "", "x"};
  for (int64_t i = 0; i < 4; ++i) ids.set_s64(i, vocabulary.id(words[i]));
  const auto text = [&](uint32_t id) { return vocabulary.text(id); };
  const Literal points = *texts_of_ids(ids, text);
  EXPECT_EQ(to_string(points.shape(), false), "u32[2,2,4]");
  const std::string path = ::testing::TempDir() + "strings" + std::to_string(::getpid()) + ".npz";
  ASSERT_TRUE(write_npz(path, {{"x", points}, {"y", points}}, {"x"}));
  std::set<std::string> texts;
  const Result<NamedLiterals> read = read_npz(path, &texts);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(texts, ElementsAre("x"));
  EXPECT_EQ(read->at(0).second, points);
  const Literal again = ids_of_texts(read->at(0).second,
                                     [&](const std::string& word) { return vocabulary.id(word); });
  EXPECT_EQ(again, ids);
  EXPECT_FALSE(read_npz(path));  // an error for callers that do not accept strings
  std::remove(path.c_str());
}

}  // namespace
}  // namespace heddle::tensor
