// The C function at the border: errors, memory, determinism, threads.
#include "emit/llvm/emit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/Object/ELFObjectFile.h>

#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "emit/llvm/compile.h"
#include "target/target.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

constexpr char kScale[] = R"(heddle.kernel 1
kernel scale { buffer x: f32[100] global in buffer y: f32[100] global out
  phase { group { vector i 100 lanes 16 { y[i] = x[i]*2:f32 } } } }
)";

struct Emitted {
  int status = 0;
  std::string object, error;
};

Emitted emit(const std::vector<std::string>& texts, const std::string& target,
             int abi = HEDDLE_EMIT_ABI, int effort = 2) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  uint8_t* object = nullptr;
  size_t bytes = 0;
  char* error = nullptr;
  Emitted result;
  result.status = heddle_emit(abi, pointers.data(), pointers.size(), target.c_str(), nullptr,
                              effort, &object, &bytes, &error);
  if (object) result.object.assign(reinterpret_cast<char*>(object), bytes);
  if (error) result.error = error;
  std::free(object);
  std::free(error);
  return result;
}

std::string target_text(const std::string& name) {
  return target::to_string(*target::find_target(name));
}

std::string kernel_text(const std::string& name, const std::string& body, int count = 1) {
  std::string text = "heddle.kernel 1\nkernel " + name +
                     " { scratch 4096 buffer x: f32[64] global in buffer y: f32[64] global out"
                     " buffer t: f32[1024] scratch at 0 ";
  for (int i = 0; i < count; ++i) text += "phase { group { " + body + " } } ";
  return text + "}\n";
}

TEST(Emit, ObjectsAreElfWithTheFunctions) {
  Emitted result = emit({kScale}, target_text("avx2"));
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_EQ(result.object.substr(1, 3), "ELF");
  EXPECT_THAT(result.object, HasSubstr("scale_p0"));
}

TEST(Emit, SameTextsSameBytes) {
  std::vector<std::string> texts = {
      kScale, kernel_text("a", "serial i 64 { y[i] = tanh(x[i]) }"),
      kernel_text("b", "vector j 64 lanes 16 { y[j] = sin(x[j]) % 3:f32 }")};
  Emitted first = emit(texts, target_text("icelake"));
  ASSERT_EQ(first.status, 0) << first.error;
  std::vector<Emitted> others(4);
  std::vector<std::thread> threads;
  for (Emitted& other : others) {
    threads.emplace_back([&] { other = emit(texts, target_text("icelake")); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Emitted& other : others) EXPECT_EQ(other.object, first.object);
  EXPECT_NE(emit(texts, target_text("avx2")).object, first.object);
}

TEST(Emit, EqualTextsAreCompiledOnce) {
  Emitted once = emit({kScale}, target_text("avx2")),
          twice = emit({kScale, kScale}, target_text("avx2"));
  ASSERT_EQ(twice.status, 0) << twice.error;
  EXPECT_EQ(once.object, twice.object);
  Emitted other = emit({kScale, kernel_text("scale", "y[0] = x[0]")}, target_text("avx2"));
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.error, HasSubstr("two different kernels"));
}

TEST(Emit, EffortsAreOtherCode) {
  std::set<std::string> objects;
  for (int effort : {0, 1, 2}) {
    Emitted result = emit({kScale}, target_text("icelake"), HEDDLE_EMIT_ABI, effort);
    ASSERT_EQ(result.status, 0) << result.error;
    objects.insert(result.object);
  }
  EXPECT_GE(objects.size(), 2u);
  EXPECT_THAT(emit({kScale}, target_text("icelake"), HEDDLE_EMIT_ABI, 3).error,
              HasSubstr("effort: got 3"));
}

TEST(Emit, NoKernelsAreAnEmptyObject) {
  Emitted result = emit({}, target_text("portable"));
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_EQ(result.object.substr(1, 3), "ELF");
}

TEST(Emit, BadInputIsAnError) {
  EXPECT_THAT(emit({"nonsense"}, target_text("avx2")).error, HasSubstr("heddle.kernel 1"));
  EXPECT_THAT(emit({kScale}, "{").error, HasSubstr("not JSON"));
  EXPECT_THAT(emit({kScale}, target_text("sm_80")).error, HasSubstr("x86_64"));
  EXPECT_THAT(emit({kScale}, target_text("avx2"), 77).error, HasSubstr("ABI 77"));
  EXPECT_THAT(emit({kernel_text("k", "x[0] = 1:f32")}, target_text("avx2")).error,
              HasSubstr("invariant 6"));
  target::Target odd = *target::find_target("avx2");
  odd.llvm_triple = "aarch64-unknown-linux-gnu";
  EXPECT_EQ(emit({kScale}, target::to_string(odd)).status, 1);
  odd = *target::find_target("avx2");
  odd.features = {"sse2"};
  EXPECT_THAT(emit({kScale}, target::to_string(odd)).error, HasSubstr("sse4.1"));
  odd = *target::find_target("avx2");
  odd.llvm_cpu = "no-such-processor";
  EXPECT_THAT(emit({kScale}, target::to_string(odd)).error, HasSubstr("no-such-processor"));
  odd = *target::find_target("avx2");
  odd.features.push_back("no-such-feature");
  EXPECT_THAT(emit({kScale}, target::to_string(odd)).error, HasSubstr("no-such-feature"));
}

// The sections and relocations that the runtime's loader must handle; README.md lists them.
TEST(Emit, ObjectsHaveFewKindsOfSectionsAndRelocations) {
  std::string body =
      "vector i 64 lanes 16 { y[i] = sin(x[i]) + exp(x[i]) % 3:f32 + cbrt(x[i]) }"
      "async_copy t[0] from x[0] count 64 async_wait 0 serial j 64 { y[j] = t[j] + pow(x[j], "
      "3:f32) }";
  const std::vector<std::string> names = {"portable", "avx2", "icelake", "spr"};
  for (size_t i = 0; i < 2 * names.size(); ++i) {
    Emitted result = emit({kernel_text("k", body)}, target_text(names[i / 2]), HEDDLE_EMIT_ABI,
                          static_cast<int>(i % 2));
    ASSERT_EQ(result.status, 0) << result.error;
    auto file = llvm::object::ObjectFile::createELFObjectFile(
        llvm::MemoryBufferRef(result.object, "object"));
    ASSERT_TRUE(static_cast<bool>(file));
    std::set<std::string> sections, relocations;
    for (const auto& section : (*file)->sections()) {
      llvm::object::ELFSectionRef elf(section);
      if (elf.getFlags() & llvm::ELF::SHF_ALLOC) sections.insert(section.getName()->str());
      EXPECT_FALSE(elf.getFlags() & llvm::ELF::SHF_WRITE);
      for (const auto& relocation : section.relocations()) {
        llvm::SmallString<32> kind;
        relocation.getTypeName(kind);
        relocations.insert(kind.str().str());
      }
    }
    std::set<std::string> known = {".text",         ".rodata",       ".rodata.cst4", ".rodata.cst8",
                                   ".rodata.cst16", ".rodata.cst32", ".rodata.cst64"};
    for (const std::string& section : sections) EXPECT_TRUE(known.contains(section)) << section;
    for (const std::string& kind : relocations) {
      EXPECT_TRUE(kind == "R_X86_64_PC32" || kind == "R_X86_64_PLT32") << kind;
    }
  }
}

}  // namespace
}  // namespace heddle
