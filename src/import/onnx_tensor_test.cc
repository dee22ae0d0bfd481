#include "import/onnx_tensor.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "import/failure.h"
#include "import/onnx_test_util.h"

namespace heddle::import {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing;  // NOLINT

// A model that returns one constant.
Model constant_model(const Message& constant) {
  Model model;
  model.constants = {constant};
  model.outputs = {"w"};
  return model;
}

std::string constant_error(const Message& constant) {
  return error_of(constant_model(constant).import());
}

Message header(DataType type, const Ints& dims) {
  Message message;
  for (int64_t dim : dims) message.number(1, dim);
  return message.number(2, type).text(8, "w");
}

TEST(OnnxTensor, RawData) {
  const auto floats = imported(constant_model(tensor<float>("w", kFloat, {2}, {1.5, -2})).import());
  EXPECT_EQ(shape_of(floats), "f32[2]");
  EXPECT_THAT(folded(floats), ElementsAre(1.5, -2));
  const auto bools = imported(constant_model(tensor<uint8_t>("w", kBool, {3}, {0, 1, 2})).import());
  EXPECT_EQ(shape_of(bools), "pred[3]");
  EXPECT_THAT(folded(bools), ElementsAre(0, 1, 1));
  constexpr auto kInt4 = static_cast<DataType>(22);
  const auto nibbles =
      imported(constant_model(tensor<uint8_t>("w", kInt4, {3}, {0x7f, 0x08})).import());
  EXPECT_EQ(shape_of(nibbles), "s4[3]");
  EXPECT_THAT(folded(nibbles), ElementsAre(-1, 7, -8));
}

TEST(OnnxTensor, TypedData) {
  const auto numbers =
      imported(constant_model(header(kFloat, {2}).real(4, 0.5f).real(4, 2)).import());
  EXPECT_THAT(folded(numbers), ElementsAre(0.5, 2));
  const auto halves = imported(
      constant_model(header(static_cast<DataType>(10), {2}).number(5, 0x3c00).number(5, 0xc000))
          .import());
  EXPECT_EQ(shape_of(halves), "f16[2]");
  EXPECT_THAT(folded(halves), ElementsAre(1, -2));
  const auto small = imported(constant_model(header(kInt8, {1}).number(5, -3)).import());
  EXPECT_THAT(folded(small), ElementsAre(-3));
}

TEST(OnnxTensor, WhatDoesNotFitIsRefused) {
  EXPECT_THAT(constant_error(tensor<float>("w", kFloat, {3}, {1, 2})),
              HasSubstr("initialiser 'w': raw_data has 8 bytes, shape f32[3] wants 12"));
  EXPECT_THAT(constant_error(header(kFloat, {2}).real(4, 1)),
              HasSubstr("float_data has 1 numbers"));
  EXPECT_THAT(constant_error(header(kFloat, {1}).real(4, 1).real(4, 1)),
              HasSubstr("more than 1 numbers"));
  EXPECT_THAT(constant_error(header(kFloat, {1}).real(4, 1).text(9, "abcd")),
              HasSubstr("both raw_data and typed data"));
  EXPECT_THAT(constant_error(header(kFloat, {-1})),
              HasSubstr("shape [-1]; dimensions must be 0 or more"));
  EXPECT_THAT(constant_error(header(kFloat, {1 << 28, 1 << 28})),
              HasSubstr("their product at most"));
  EXPECT_THAT(constant_error(header(kFloat, {0, 1 << 28, 1 << 28})),
              HasSubstr("their product at most"));
  EXPECT_THAT(constant_error(header(kFloat, {1 << 28})), HasSubstr("holds at most 0 numbers"));
  EXPECT_THAT(constant_error(header(kFloat, Ints(40, 1)).real(4, 1)), HasSubstr("rank 40"));
  EXPECT_EQ(constant_error(header(kString, {1}).text(6, "s")), "");
  EXPECT_THAT(constant_error(header(kString, {2}).text(6, "s")), HasSubstr("has 1 strings"));
  EXPECT_THAT(constant_error(header(kString, {1}).text(9, "s")), HasSubstr("string_data only"));
  EXPECT_THAT(constant_error(header(static_cast<DataType>(0), {1})), HasSubstr("0 (undefined)"));
  EXPECT_THAT(constant_error(header(static_cast<DataType>(99), {1})), HasSubstr("99 (unknown)"));
  EXPECT_THAT(constant_error(header(kFloat, {1}).text(6, "s")), HasSubstr("strings"));
}

class External : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "heddle_external_" + std::to_string(::getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/model/sub");
    write("model/data.bin", std::string(4096, 'a') + std::string(8, '\0'));
    write("outside.bin", std::string(64, 'x'));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
  }
  static Message entry(const std::string& key, const std::string& value) {
    return Message().text(1, key).text(2, value);
  }
  std::string error(const std::string& location, const std::string& offset = "0",
                    const std::string& length = "8") const {
    return error_of(import_with(location, offset, length));
  }
  Result<Imported> import_with(const std::string& location, const std::string& offset,
                               const std::string& length) const {
    const Message constant = header(kFloat, {2})
                                 .message(13, entry("location", location))
                                 .message(13, entry("offset", offset))
                                 .message(13, entry("length", length))
                                 .number(14, 1);
    write("model/model.onnx", constant_model(constant).bytes());
    return import_onnx(folder_ + "/model/model.onnx");
  }
  std::string folder_;
};

TEST_F(External, IsMappedNotCopied) {
  const Imported result = imported(import_with("./data.bin", "4096", "8"));
  EXPECT_THAT(folded(result), ElementsAre(0, 0));
  // The address has the file's page offset: the literal is a view of the mapping.
  const auto address =
      reinterpret_cast<uintptr_t>(result.module->entry()->root()->operand(0)->literal().data());
  EXPECT_EQ(address % 4096, 0u);
}

TEST_F(External, StaysInsideTheModelsFolder) {
  EXPECT_THAT(error("../outside.bin"), HasSubstr("'..' is not allowed"));
  EXPECT_THAT(error("sub/../../outside.bin"), HasSubstr("'..' is not allowed"));
  EXPECT_THAT(error(folder_ + "/outside.bin"), HasSubstr("is absolute"));
  EXPECT_THAT(error("sub\\data.bin"), HasSubstr("backslash"));
  EXPECT_THAT(error(std::string("data.bin\0x", 10)), HasSubstr("NUL"));
  EXPECT_THAT(error(std::string(5000, 'a')), HasSubstr("too long"));
  EXPECT_THAT(error(""), HasSubstr("empty"));
  for (const char* folder : {".", "data.bin/", "data.bin/.", "./", "sub/"})
    EXPECT_THAT(error(folder), HasSubstr("names a folder")) << folder;
  EXPECT_THAT(error("missing.bin"), HasSubstr("No such file"));
  EXPECT_THAT(error("sub"), HasSubstr("not a regular file"));
}

TEST_F(External, FollowsNoLinks) {
  std::filesystem::create_symlink("../outside.bin", folder_ + "/model/link.bin");
  std::filesystem::create_directory_symlink("..", folder_ + "/model/up");
  std::filesystem::create_hard_link(folder_ + "/outside.bin", folder_ + "/model/hard.bin");
  ASSERT_EQ(::mkfifo((folder_ + "/model/pipe").c_str(), 0600), 0);
  EXPECT_THAT(error("link.bin"), HasSubstr("links are not followed"));
  EXPECT_THAT(error("up/outside.bin"), HasSubstr("links are not followed"));
  EXPECT_THAT(error("hard.bin"), HasSubstr("hard links"));
  EXPECT_THAT(error("pipe"), HasSubstr("not a regular file"));
}

TEST_F(External, OffsetsAreInsideTheFile) {
  EXPECT_THAT(error("data.bin", "4097"), HasSubstr("4104 bytes, wanted 8 at offset 4097"));
  EXPECT_THAT(error("data.bin", "9223372036854775807"), HasSubstr("wanted 8 at offset"));
  EXPECT_THAT(error("data.bin", "99999999999999999999"), HasSubstr("wanted a number of bytes"));
  EXPECT_THAT(error("data.bin", "-8"), HasSubstr("wanted a number of bytes"));
  EXPECT_THAT(error("data.bin", "0x10"), HasSubstr("wanted a number of bytes"));
  EXPECT_THAT(error("data.bin", "0", "12"), HasSubstr("length 12, shape f32[2] wants 8"));
  EXPECT_THAT(
      error_of(constant_model(header(kFloat, {1}).message(13, entry("location", "x")).number(14, 1))
                   .import()),
      HasSubstr("not read from a folder"));
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  EXPECT_THAT(error_of(import_onnx("/nonexistent/model.onnx")), HasSubstr("cannot be opened"));
  EXPECT_THAT(error_of(import_onnx("/")), HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace heddle::import
