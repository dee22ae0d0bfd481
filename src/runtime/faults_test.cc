// Programs of files on a device with faults, again and again: for the sanitizers, which need not
// build the compiler for it. tests/virtual_programs_test.cc does the same through the session.
//   heddle compile model.hlo -o programs/model.heddle
//   HEDDLE_FAULT_PROGRAMS=programs HEDDLE_FAULT_RUNS=100000 runtime_test --gtest_filter=faults.*
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "base/parallel.h"
#include "program/file.h"
#include "runtime/cpu_device.h"
#include "runtime/executor.h"
#include "runtime/virtual_device.h"

namespace heddle::runtime {
namespace {

using Bytes = std::vector<std::vector<char>>;

Status run(const program::Program& program, const Device& device, int times, Bytes* outputs) {
  HEDDLE_ASSIGN_OR_RETURN(const auto executable,
                          Executable::load(program::Program(program), device));
  HEDDLE_ASSIGN_OR_RETURN(const auto context, executable->make_context());
  Bytes inputs;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    inputs.emplace_back(static_cast<size_t>(program::stored_bytes(program.inputs[i].shape)));
    for (size_t at = 0; at + 4 <= inputs[i].size(); at += 4) {
      const float value = static_cast<float>(at % 52) * 0.01f;
      std::memcpy(&inputs[i][at], &value, 4);
    }
    HEDDLE_RETURN_IF_ERROR(context->bind_input(static_cast<int64_t>(i), inputs[i].data()));
  }
  outputs->clear();
  outputs->reserve(program.outputs.size());
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    outputs->emplace_back(static_cast<size_t>(program::stored_bytes(program.outputs[i].shape)));
    HEDDLE_RETURN_IF_ERROR(context->bind_output(static_cast<int64_t>(i), outputs->back().data()));
  }
  for (int i = 0; i < times; ++i) HEDDLE_RETURN_IF_ERROR(context->run());
  return {};
}

TEST(faults, ProgramsOfFiles) {
  const char* folder = std::getenv("HEDDLE_FAULT_PROGRAMS");
  // The programs have to be compiled before, by a build that has the compiler.
  if (folder == nullptr) GTEST_SKIP() << "HEDDLE_FAULT_PROGRAMS is not set";
  const char* wanted = std::getenv("HEDDLE_FAULT_RUNS");
  const int runs = wanted == nullptr ? 1000 : std::atoi(wanted);
  Workers workers(1);
  const CpuDevice cpu(workers);
  std::vector<program::Program> programs;
  std::vector<Bytes> want;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    auto loaded = program::load(entry.path());
    ASSERT_TRUE(loaded) << loaded.error().message;
    programs.push_back(std::move(*loaded));
    const Status ran = run(programs.back(), cpu.device(), 1, &want.emplace_back());
    ASSERT_TRUE(ran) << ran.error().message;
  }
  ASSERT_FALSE(programs.empty());
  std::mt19937 random(1);
  int errors = 0, right = 0;
  for (int i = 0; i < runs; ++i) {
    const size_t which = random() % programs.size();
    VirtualOptions options;
    options.seed = static_cast<uint64_t>(i);
    options.streams = 1 + static_cast<int64_t>(random() % 4);
    const int64_t number = 1 + static_cast<int64_t>(random() % 40);
    int64_t* const faults[] = {&options.faults.no_memory_at, &options.faults.lost_event_at,
                               &options.faults.lost_at, &options.faults.slow_stream};
    *faults[random() % 4] = number;
    const VirtualDevice device(options);
    Bytes got;
    const Status ran = run(programs[which], device.device(), 2, &got);
    if (ran) {
      ASSERT_EQ(got, want[which]) << i;
    } else {
      ASSERT_NE(ran.error().message.find("device virtual"), std::string::npos)
          << ran.error().message;
    }
    ++(ran ? right : errors);
    ASSERT_EQ(device.counts().used_bytes, 0) << i;
    ASSERT_EQ(device.counts().live_streams, 0) << i;
    ASSERT_EQ(device.counts().live_events, 0) << i;
  }
  EXPECT_GT(errors, runs / 20);
  EXPECT_GT(right, runs / 20);
  fmt::print("{} runs with a fault: {} right, {} errors\n", runs, right, errors);
}

}  // namespace
}  // namespace heddle::runtime
