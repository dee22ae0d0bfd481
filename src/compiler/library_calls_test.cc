// Which products become library calls, and that their values do not change.
#include "compiler/library_calls.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "compiler/library_tasks.h"
#include "compiler/passes.h"
#include "hlo/library_call.h"
#include "hlo/text.h"
#include "hlo/verify.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "library/library.h"
#include "tensor/compare.h"

namespace heddle::compiler {
namespace {

using hlo::Instr;
using hlo::Opcode;

std::unique_ptr<hlo::Module> parse(const std::string& text) {
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module) << (module ? "" : module.error().message) << "\n" << text;
  return std::move(*module);
}

Instr* find_product(const hlo::Module& module) {
  for (Instr* instr : module.entry()->instrs())
    if (instr->is(Opcode::dot) || instr->is(Opcode::convolution)) return instr;
  return nullptr;
}

target::Target host() { return target::host_target(); }

// Empty: oneDNN is here; else the library's own reason (not installed, another version).
std::string absent() {
  const library::Opened opened = library::open(library::kOneDnn, host());
  if (opened.library) return "";
  return fmt::format("needs oneDNN: {} ({})", opened.decision.reason(), opened.decision.code());
}

std::string dot_text(const std::string& lhs, const std::string& rhs, const std::string& result,
                     const std::string& dims) {
  return "HloModule m\nENTRY e {\n  a = " + lhs + " parameter(0)\n  b = " + rhs +
         " parameter(1)\n  ROOT d = " + result + " dot(a, b), " + dims + "\n}";
}

library::Operation matched(const std::string& text) {
  auto module = parse(text);
  LibraryProduct found;
  const Decision fits = match_library(find_product(*module), &found);
  EXPECT_TRUE(fits) << fits.reason();
  EXPECT_TRUE(library::check(found.operation));
  return found.operation;
}

std::string refused(const std::string& text) {
  auto module = parse(text);
  LibraryProduct found;
  return match_library(find_product(*module), &found).code();
}

TEST(MatchLibrary, ProductsByTheirStrides) {
  library::Operation o = matched(dot_text("f32[2,6,8]", "f32[8,5]", "f32[2,6,5]",
                                          "lhs_contracting_dims={2}, rhs_contracting_dims={0}"));
  EXPECT_EQ(to_string(o), "product batch=1 m=12 n=5 k=8 a=0,8,1 b=0,5,1 c=60,5,1 bias=0");
  o = matched(dot_text("f32[8,6]", "f32[5,8]", "f32[6,5]",
                       "lhs_contracting_dims={0}, rhs_contracting_dims={1}"));
  EXPECT_EQ(to_string(o), "product batch=1 m=6 n=5 k=8 a=0,1,6 b=0,1,8 c=30,5,1 bias=0");
  o = matched(dot_text("f32[3,6,8]", "f32[3,5,8]", "f32[3,6,5]",
                       "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
                       "rhs_contracting_dims={2}"));
  EXPECT_EQ(to_string(o), "product batch=3 m=6 n=5 k=8 a=48,8,1 b=40,1,8 c=30,5,1 bias=0");
  o = matched(dot_text("f32[1,8]", "f32[8,1]", "f32[1,1]",
                       "lhs_contracting_dims={1}, rhs_contracting_dims={0}"));
  EXPECT_EQ(to_string(o), "product batch=1 m=1 n=1 k=8 a=0,8,1 b=0,1,8 c=1,1,1 bias=0");
}

TEST(MatchLibrary, WhatDoesNotFitHasACode) {
  const std::string plain = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
  EXPECT_EQ(refused(dot_text("f64[4,4]", "f64[4,4]", "f64[4,4]", plain)), "library-type");
  EXPECT_EQ(refused(dot_text("f32[4,4]", "f32[4,4]", "f32[4,4]",
                             plain + ", algorithm=dot_bf16_bf16_f32")),
            "library-type");
  // Heads between rows and columns, in several images.
  EXPECT_EQ(refused(dot_text("f32[2,6,3,8]", "f32[2,5,3,8]", "f32[2,3,6,5]",
                             "lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, "
                             "lhs_contracting_dims={3}, rhs_contracting_dims={3}")),
            "library-strides");
  EXPECT_EQ(refused("HloModule m\nENTRY e {\n  a = f32[1,4,4,2] parameter(0)\n  w = f32[3,3,2,4] "
                    "parameter(1)\n  ROOT c = f32[1,5,5,4] convolution(a, w), "
                    "window={size=3x3 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f\n}"),
            "library-window");
}

constexpr const char* kNet = R"(HloModule net
ENTRY e {
  x = f32[2,12,10,16] parameter(0)
  w = f32[3,3,4,24] constant({...})
  b = f32[24] parameter(1)
  c = f32[2,6,5,24] convolution(x, w), window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=4
  bb = f32[2,6,5,24] broadcast(b), dimensions={3}
  s = f32[2,6,5,24] add(bb, c)
  zero = f32[] constant(0)
  zeros = f32[2,6,5,24] broadcast(zero), dimensions={}
  r = f32[2,6,5,24] maximum(s, zeros)
  f = f32[60,24] reshape(r)
  v = f32[24,20] constant({...})
  d = f32[60,20] dot(f, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[20,60] transpose(d), dimensions={1,0}
  g = f32[60,60] dot(d, e), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT all = (f32[60,20], f32[60,60]) tuple(d, g)
}
)";

Status called(hlo::Module* module, const target::Target& target, const std::string& library,
              std::vector<std::string>* notes, Report* report) {
  Context context;
  context.target = &target;
  context.library = library;
  context.report = report;
  context.notes = notes;
  const Result<bool> changed = call_libraries(*module, context);
  return changed ? Status() : Status(tl::unexpect, changed.error());
}

// The wrapped computations compute the same as before.
TEST(CallLibraries, KeepTheModulesMeaning) {
  // oneDNN is optional: without it there is nothing to call, and everything else is still tested.
  if (const std::string why = absent(); !why.empty()) GTEST_SKIP() << why;
  auto module = parse(kNet);
  const auto inputs = interp::random_arguments(*module, 3);
  auto before = interp::evaluate(*module, inputs);
  ASSERT_TRUE(before) << before.error().message;
  std::vector<std::string> notes;
  Report report;
  const Status status = called(module.get(), host(), library::kOneDnn, &notes, &report);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_TRUE(hlo::verify(*module));
  ASSERT_EQ(report.library_calls.size(), 3u);
  EXPECT_EQ(report.library_calls[0].why, "asked for");
  EXPECT_EQ(report.library_calls[0].name, "s");  // with its bias
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(notes[0].starts_with("library: 3 products by onednn ")) << notes[0];
  for (const Instr* instr : module->entry()->instrs()) {
    EXPECT_FALSE(instr->is(Opcode::dot) || instr->is(Opcode::convolution)) << instr->name();
    if (!instr->is(Opcode::custom_call)) continue;
    const auto call = hlo::library_call(*instr);
    ASSERT_TRUE(call);
    EXPECT_TRUE(library::parse_operation(call->operation));
  }
  auto read_back = parse(hlo::to_string(*module));
  for (const hlo::Module* one : {module.get(), read_back.get()}) {
    auto after = interp::evaluate(*one, inputs);
    ASSERT_TRUE(after) << after.error().message;
    EXPECT_EQ(tensor::to_string(after->shape()), tensor::to_string(before->shape()));
    for (size_t i = 0; i < before->elements().size(); ++i)
      EXPECT_EQ(0, std::memcmp(after->elements()[i].data(), before->elements()[i].data(),
                               static_cast<size_t>(before->elements()[i].bytes())));
  }
}

std::vector<std::string> codes_of(const Report& report) {
  std::vector<std::string> codes;
  for (const Report::Refusal& refusal : report.refusals) codes.push_back(refusal.code);
  return codes;
}

TEST(CallLibraries, RecordsDecide) {
  // oneDNN is optional: without it there is nothing to call, and everything else is still tested.
  if (const std::string why = absent(); !why.empty()) GTEST_SKIP() << why;
  const library::Facts facts = library::open(library::kOneDnn, host()).library->facts();
  std::vector<std::string> notes;
  auto module = parse(kNet);
  Report none;
  ASSERT_TRUE(called(module.get(), host(), "auto", &notes, &none));
  EXPECT_EQ(codes_of(none), std::vector<std::string>(3, "library-unmeasured"));
  EXPECT_TRUE(notes.empty());
  LibraryProduct conv;
  ASSERT_TRUE(match_library(find_product(*module), &conv));
  const std::string key = library::key_of(conv.operation, facts.name + " " + facts.version);
  for (const std::string& record : {std::string(kOwnRecord), facts.name, facts.name + kWhole}) {
    const bool faster = record != kOwnRecord;
    target::Target target = with_record(host(), key, record);
    module = parse(kNet);
    Report report;
    ASSERT_TRUE(called(module.get(), target, "auto", &notes, &report));
    EXPECT_EQ(report.library_calls.size(), faster ? 1u : 0u);
    EXPECT_EQ(std::ssize(codes_of(report)), faster ? 2 : 3);
    if (!faster) {
      EXPECT_EQ(codes_of(report)[0], "library-slower");
    }
  }
}

TEST(CallLibraries, AnAbsentLibraryIsARefusalOrAnError) {
  setenv("HEDDLE_ONEDNN", "off", 1);
  auto module = parse(kNet);
  const std::string before = hlo::to_string(*module);
  std::vector<std::string> notes;
  Report report;
  EXPECT_TRUE(called(module.get(), host(), "auto", &notes, &report));
  EXPECT_EQ(codes_of(report), std::vector<std::string>(3, "library-absent"));
  EXPECT_EQ(hlo::to_string(*module), before);
  const Status named = called(module.get(), host(), library::kOneDnn, &notes, &report);
  unsetenv("HEDDLE_ONEDNN");
  ASSERT_FALSE(named);
  EXPECT_EQ(named.error().kind, ErrorKind::user);
  EXPECT_NE(named.error().message.find("--library=onednn"), std::string::npos);
}

TEST(LibraryTasks, AreWhatRecordsAreLookedUpFor) {
  // oneDNN is optional: without it there is nothing to call, and everything else is still tested.
  if (const std::string why = absent(); !why.empty()) GTEST_SKIP() << why;
  Options options;
  options.library = "auto";
  const target::Target target = target::host_target();
  std::vector<TuneTask> tasks;
  ASSERT_TRUE(add_library_tasks(parse(kNet), target, options, &tasks));
  ASSERT_FALSE(tasks.empty());
  target::Target with = target;
  for (const TuneTask& task : tasks) {
    EXPECT_EQ(task.records, (std::vector<std::string>{kOwnRecord, library::kOneDnn}));
    ASSERT_NE(task.sample, nullptr);
    with = with_record(with, task.key, library::kOneDnn);
  }
  // A compilation of the whole module finds every one of them.
  Report report;
  ASSERT_TRUE(compile(parse(kNet), {}, with, options, &report));
  EXPECT_EQ(report.library_calls.size(), 3u);
  std::vector<TuneTask> none;
  options.library = "none";
  ASSERT_TRUE(add_library_tasks(parse(kNet), target, options, &none));
  EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace heddle::compiler
