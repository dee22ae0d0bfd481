#include "compiler/cached.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "hlo/text.h"
#include "program/program.h"
#include "target/target.h"

namespace heddle::compiler {
namespace {

constexpr const char* kText = R"(HloModule m
ENTRY main {
  x = f32[64,32] parameter(0)
  w = f32[64,32] constant({...})
  y = f32[64,32] add(x, w)
  ROOT z = f32[64,32] tanh(y)
})";

class Cached : public testing::Test {
 protected:
  void SetUp() override {
    options_.object_cache_directory =
        testing::TempDir() + "/heddle_cached_" + std::to_string(getpid());
  }
  void TearDown() override { std::filesystem::remove_all(options_.object_cache_directory); }

  // `change` is added to one of the weights.
  program::Program compile(float change = 0, const std::string& input = "x") {
    std::string text = kText, values;
    for (int i = 0; i < 64; ++i) {
      values += i == 0 ? "{" : ",{";
      for (int j = 0; j < 32; ++j)
        values += fmt::format("{}{}", j == 0 ? "" : ",", i + j + (i == 60 && j == 3 ? change : 0));
      values += "}";
    }
    text.replace(text.find("{...}"), 5, "{" + values + "}");
    auto module = hlo::parse_module(text);
    EXPECT_TRUE(module) << module.error().message;
    report_ = {};
    auto made =
        compile_cached(std::move(*module), {{input}, {""}, {"z"}}, target_, options_, &report_);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(made->program);
  }
  bool hit() const { return !report_.times_ms.empty() && report_.times_ms[0].first == "cache"; }

  target::Target target_ = target::host_target();
  Options options_;
  Report report_;
};

TEST_F(Cached, FindsTheSameProgram) {
  const program::Program first = compile();
  EXPECT_FALSE(hit());
  const program::Program second = compile();
  EXPECT_TRUE(hit());
  EXPECT_EQ(first.object, second.object);
  EXPECT_EQ(first.commands.size(), second.commands.size());
  ASSERT_EQ(first.constants.size(), second.constants.size());
  for (size_t i = 0; i < first.constants.size(); ++i)
    EXPECT_EQ(first.constants[i], second.constants[i]) << i;
}

TEST_F(Cached, WhatChangesAProgramIsAnotherOne) {
  compile();
  compile(1);
  EXPECT_FALSE(hit()) << "a weight";
  compile(0, "other");
  EXPECT_FALSE(hit()) << "the name of an input";
  options_.level = Level::O1;
  compile();
  EXPECT_FALSE(hit()) << "the level";
  options_.level = Level::O2;
  options_.numerics = Numerics::strict;
  compile();
  EXPECT_FALSE(hit()) << "numerics";
  options_.numerics = Numerics::standard;
  options_.disable = {"cse"};
  compile();
  EXPECT_FALSE(hit()) << "a pass left out";
  options_.disable.clear();
  options_.memory = Memory::pooled;
  compile();
  EXPECT_FALSE(hit()) << "dynamic memory";
  options_.memory = Memory::planned;
  target_.records = std::make_shared<const std::map<std::string, std::string>>(
      std::map<std::string, std::string>{{"some product", "some record"}});
  compile();
  EXPECT_FALSE(hit()) << "tuning";
  target_.records.reset();
  options_.compile_threads = 2;  // changes nothing
  compile();
  EXPECT_TRUE(hit());
}

}  // namespace
}  // namespace heddle::compiler
