// The plug-in's library as jaxlib uses it, without JAX.
#include <gmock/gmock.h>

#include <algorithm>

#include "driver.h"

namespace heddle::pjrt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kNegate =
    "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
    "  %0 = stablehlo.negate %x : tensor<2xf32>\n"
    "  return %0 : tensor<2xf32>\n"
    "}\n";

TEST(PjrtTable, EveryFunctionIsThere) {
  EXPECT_EQ(api().pjrt_api_version.major_version, PJRT_API_MAJOR);
  EXPECT_EQ(api().pjrt_api_version.minor_version, PJRT_API_MINOR);
  const auto* first = reinterpret_cast<void* const*>(&api().PJRT_Error_Destroy);
  const auto* last = reinterpret_cast<void* const*>(&api().PJRT_Event_Set);
  for (const auto* function = first; function <= last; ++function)
    EXPECT_NE(*function, nullptr) << function - first;
}

// A struct of any function, as somebody leaves it who knows nothing of it.
struct Blank {
  size_t struct_size = 0;
  char rest[1024] = {};
};
using Any = PJRT_Error* (*)(Blank*);

TEST(PjrtTable, NoFunctionTrustsItsArguments) {
  const auto* first = reinterpret_cast<const Any*>(&api().PJRT_Error_GetCode);
  const auto* last = reinterpret_cast<const Any*>(&api().PJRT_Event_Set);
  const auto at = [](const auto& member) { return reinterpret_cast<const Any*>(&member); };
  // These need nothing, and what they make would have to be freed.
  const std::vector<const Any*> makers = {
      at(api().PJRT_Client_Create), at(api().PJRT_TopologyDescription_Create),
      at(api().PJRT_ExecuteContext_Create), at(api().PJRT_Event_Create)};
  for (const Any* function = first; function <= last; ++function) {
    SCOPED_TRACE(function - first);
    EXPECT_NE(outcome((*function)(nullptr)).code, PJRT_Error_Code_OK);
    Blank none, small, whole;
    small.struct_size = 2 * sizeof(void*);
    whole.struct_size = sizeof whole;
    EXPECT_NE(outcome((*function)(&none)).code, PJRT_Error_Code_OK);
    if (std::find(makers.begin(), makers.end(), function) != makers.end()) continue;
    outcome((*function)(&small));  // an error, or nothing to do: it returns
    outcome((*function)(&whole));
  }
}

TEST(PjrtTable, WhatIsMissingNamesItself) {
  ARGS(CopyToDeviceStream_Destroy, args);
  const Outcome got = outcome(api().PJRT_CopyToDeviceStream_Destroy(&args));
  EXPECT_EQ(got.code, PJRT_Error_Code_UNIMPLEMENTED);
  EXPECT_THAT(got.message, HasSubstr("PJRT_CopyToDeviceStream_Destroy"));
}

TEST(PjrtTable, AttributesTellTheVersionOfStablehlo) {
  ARGS(Plugin_Attributes, args);
  CALL(Plugin_Attributes, args);
  bool found = false;
  for (size_t i = 0; i < args.num_attributes; ++i) {
    const PJRT_NamedValue& value = args.attributes[i];
    if (std::string(value.name, value.name_size) != "stablehlo_current_version") continue;
    found = true;
    EXPECT_EQ(value.type, PJRT_NamedValue_kInt64List);
    EXPECT_EQ(value.value_size, 3U);
  }
  EXPECT_TRUE(found);
}

TEST_F(Driver, CompilesAndRunsPortableBytecode) {
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(compile(golden("axpy.mlir.bc"), &executable).message, "");
  PJRT_Buffer* x = buffer({1, 2, 3, 4, 5, 6}, {2, 3});
  PJRT_Buffer* y = buffer({1, 1, 1, 1, 1, 1}, {2, 3});
  std::vector<PJRT_Buffer*> results(2);
  ASSERT_EQ(execute(executable, {x, y}, results, {0}).message, "");
  EXPECT_THAT(values(results[0]), ElementsAre(3, 5, 7, 9, 11, 13));
  EXPECT_THAT(values(results[1]), ElementsAre(21));
  EXPECT_FALSE(is_deleted(x));  // it was not to be donated
  EXPECT_THAT(values(x), ElementsAre(1, 2, 3, 4, 5, 6));
  for (PJRT_Buffer* each : {x, y, results[0], results[1]}) free_buffer(each);
  free_executable(executable);
}

TEST_F(Driver, ADonatedBufferIsTheResult) {
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(compile(golden("axpy.mlir.bc"), &executable).message, "");
  PJRT_Buffer* x = buffer({1, 2, 3, 4, 5, 6}, {2, 3});
  PJRT_Buffer* y = buffer({1, 1, 1, 1, 1, 1}, {2, 3});
  const uintptr_t memory = address(x);
  std::vector<PJRT_Buffer*> results(2);
  ASSERT_EQ(execute(executable, {x, y}, results).message, "");
  EXPECT_THAT(values(results[0]), ElementsAre(3, 5, 7, 9, 11, 13));
  EXPECT_THAT(values(results[1]), ElementsAre(21));
  EXPECT_EQ(address(results[0]), memory);
  EXPECT_TRUE(is_deleted(x));
  std::vector<PJRT_Buffer*> again(2);
  EXPECT_THAT(execute(executable, {x, y}, again).message, HasSubstr("deleted or donated"));
  const Outcome twice = execute(executable, {y, y}, again);
  EXPECT_EQ(twice.code, PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_THAT(twice.message, HasSubstr("donate the same buffer twice"));
  for (PJRT_Buffer* each : {x, y, results[0], results[1]}) free_buffer(each);
  free_executable(executable);
}

TEST_F(Driver, ADonatedBufferThatOthersReadIsLeftAsItIs) {
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(compile(golden("axpy.mlir.bc"), &executable).message, "");
  PJRT_Buffer* x = buffer({1, 2, 3, 4, 5, 6}, {2, 3});
  PJRT_Buffer* y = buffer({1, 1, 1, 1, 1, 1}, {2, 3});
  ARGS(Buffer_IncreaseExternalReferenceCount, more);
  more.buffer = x;
  CALL(Buffer_IncreaseExternalReferenceCount, more);
  const auto* seen = reinterpret_cast<const float*>(address(x));
  std::vector<PJRT_Buffer*> results(2);
  ASSERT_EQ(execute(executable, {x, y}, results).message, "");
  EXPECT_TRUE(is_deleted(x));
  EXPECT_EQ(seen[5], 6);
  EXPECT_THAT(values(results[0]), ElementsAre(3, 5, 7, 9, 11, 13));
  ARGS(Buffer_DecreaseExternalReferenceCount, less);
  less.buffer = x;
  CALL(Buffer_DecreaseExternalReferenceCount, less);
  EXPECT_EQ(outcome(api().PJRT_Buffer_DecreaseExternalReferenceCount(&less)).code,
            PJRT_Error_Code_FAILED_PRECONDITION);
  for (PJRT_Buffer* each : {x, y, results[0], results[1]}) free_buffer(each);
  free_executable(executable);
}

TEST_F(Driver, SerialisedProgramsRun) {
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(compile(kNegate, &executable).message, "");
  ARGS(LoadedExecutable_GetExecutable, get);
  get.loaded_executable = executable;
  CALL(LoadedExecutable_GetExecutable, get);
  ARGS(Executable_Serialize, serialize);
  serialize.executable = get.executable;
  CALL(Executable_Serialize, serialize);
  ARGS(Executable_DeserializeAndLoad, load);
  load.client = client_;
  load.serialized_executable = serialize.serialized_bytes;
  load.serialized_executable_size = serialize.serialized_bytes_size;
  CALL(Executable_DeserializeAndLoad, load);
  for (size_t cut = 0; cut < serialize.serialized_bytes_size;
       cut += serialize.serialized_bytes_size / 7 + 1) {
    ARGS(Executable_DeserializeAndLoad, damaged);
    damaged.client = client_;
    damaged.serialized_executable = serialize.serialized_bytes;
    damaged.serialized_executable_size = cut;
    EXPECT_EQ(outcome(api().PJRT_Executable_DeserializeAndLoad(&damaged)).code,
              PJRT_Error_Code_INVALID_ARGUMENT);
  }
  serialize.serialized_executable_deleter(serialize.serialized_executable);
  ARGS(Executable_Destroy, destroy);
  destroy.executable = get.executable;
  CALL(Executable_Destroy, destroy);
  free_executable(executable);

  PJRT_Buffer* x = buffer({1, -2}, {2});
  std::vector<PJRT_Buffer*> results(1);
  ASSERT_EQ(execute(load.loaded_executable, {x}, results).message, "");
  EXPECT_THAT(values(results[0]), ElementsAre(-1, 2));
  free_buffer(x);
  free_buffer(results[0]);
  free_executable(load.loaded_executable);
}

TEST_F(Driver, WrongProgramsAndArgumentsAreErrors) {
  PJRT_LoadedExecutable* executable = nullptr;
  EXPECT_EQ(compile("no program", &executable).code, PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_EQ(compile("", &executable).code, PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_EQ(compile(kNegate, &executable, "", "llvm").code, PJRT_Error_Code_UNIMPLEMENTED);
  EXPECT_EQ(compile(kNegate, &executable, "\x1a\x7f").code, PJRT_Error_Code_INVALID_ARGUMENT);
  const std::string two_partitions = "\x1a\x02\x28\x02";
  EXPECT_EQ(compile(kNegate, &executable, two_partitions).code, PJRT_Error_Code_UNIMPLEMENTED);
  const std::string bad_option =
      "\x3a\x09\x0a\x03"
      "abc\x12\x02\x10\x01";
  EXPECT_THAT(compile(kNegate, &executable, bad_option).message,
              HasSubstr("No such compile option: 'abc'"));
  const Outcome unknown = compile(
      "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
      "  %0 = stablehlo.custom_call @nobody_has(%x) : (tensor<2xf32>) -> tensor<2xf32>\n"
      "  return %0 : tensor<2xf32>\n}\n",
      &executable);
  EXPECT_EQ(unknown.code, PJRT_Error_Code_UNIMPLEMENTED) << unknown.message;
  EXPECT_THAT(unknown.message, HasSubstr("nobody_has"));
  ASSERT_EQ(compile(kNegate, &executable).message, "");
  PJRT_Buffer* wrong = buffer({1, 2, 3}, {3});
  std::vector<PJRT_Buffer*> results(1);
  EXPECT_THAT(execute(executable, {wrong}, results).message, HasSubstr("f32[3]"));
  EXPECT_THAT(execute(executable, {}, results).message, HasSubstr("1 inputs, got 0"));
  EXPECT_THAT(execute(executable, {nullptr}, results).message, HasSubstr("null"));
  free_buffer(wrong);
  ARGS(LoadedExecutable_Delete, drop);
  drop.executable = executable;
  CALL(LoadedExecutable_Delete, drop);
  EXPECT_THAT(execute(executable, {}, results).message, HasSubstr("deleted"));
  free_executable(executable);
}

// Callers of other versions have structs that end earlier or later.
TEST_F(Driver, StructsOfOtherSizes) {
  struct {
    PJRT_Client_PlatformName_Args args;
    char behind[16];
  } newer{};
  std::memset(newer.behind, 0x5a, sizeof newer.behind);
  newer.args.struct_size = sizeof newer;
  newer.args.client = client_;
  ASSERT_EQ(api().PJRT_Client_PlatformName(&newer.args), nullptr);
  EXPECT_EQ(std::string(newer.args.platform_name, newer.args.platform_name_size), "heddle");
  for (const char byte : newer.behind) EXPECT_EQ(byte, 0x5a);

  PJRT_Client_PlatformName_Args older{};  // ends before platform_name_size
  older.struct_size = offsetof(PJRT_Client_PlatformName_Args, platform_name_size);
  older.client = client_;
  older.platform_name_size = 77;
  ASSERT_EQ(api().PJRT_Client_PlatformName(&older), nullptr);
  EXPECT_STREQ(older.platform_name, "heddle");
  EXPECT_EQ(older.platform_name_size, 77U);

  PJRT_Client_PlatformName_Args tiny{};
  tiny.struct_size = 3;
  EXPECT_EQ(outcome(api().PJRT_Client_PlatformName(&tiny)).code, PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_EQ(outcome(api().PJRT_Client_PlatformName(nullptr)).code,
            PJRT_Error_Code_INVALID_ARGUMENT);
}

TEST_F(Driver, NullHandlesAreErrors) {
  ARGS(Buffer_Dimensions, dims);
  EXPECT_EQ(outcome(api().PJRT_Buffer_Dimensions(&dims)).code, PJRT_Error_Code_INVALID_ARGUMENT);
  ARGS(Client_Compile, compile);
  EXPECT_EQ(outcome(api().PJRT_Client_Compile(&compile)).code, PJRT_Error_Code_INVALID_ARGUMENT);
  ARGS(LoadedExecutable_Execute, execute);
  EXPECT_EQ(outcome(api().PJRT_LoadedExecutable_Execute(&execute)).code,
            PJRT_Error_Code_INVALID_ARGUMENT);
}

TEST_F(Driver, StridesAndLayoutsOfTheHost) {
  const std::vector<float> memory = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {3, 2}, strides[] = {4, 12};  // the transpose of [2,3]
  ARGS(Client_BufferFromHostBuffer, from);
  from.client = client_;
  from.data = memory.data();
  from.type = PJRT_Buffer_Type_F32;
  from.dims = dims;
  from.num_dims = 2;
  from.byte_strides = strides;
  from.num_byte_strides = 2;
  from.device = device_;
  CALL(Client_BufferFromHostBuffer, from);
  free_event(from.done_with_host_buffer);
  EXPECT_THAT(values(from.buffer), ElementsAre(1, 4, 2, 5, 3, 6));
  const int64_t columns_first[] = {0, 1};
  PJRT_Buffer_MemoryLayout layout{};
  layout.struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE;
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE;
  layout.tiled.minor_to_major = columns_first;
  layout.tiled.minor_to_major_size = 2;
  std::vector<float> to(6);
  ARGS(Buffer_ToHostBuffer, back);
  back.src = from.buffer;
  back.host_layout = &layout;
  back.dst = to.data();
  back.dst_size = sizeof(float) * to.size();
  CALL(Buffer_ToHostBuffer, back);
  free_event(back.event);
  EXPECT_EQ(to, memory);
  back.dst_size = 8;
  EXPECT_EQ(outcome(api().PJRT_Buffer_ToHostBuffer(&back)).code, PJRT_Error_Code_INVALID_ARGUMENT);
  free_buffer(from.buffer);
}

TEST_F(Driver, MemoryOfTheHostIsSharedWhereItMayBe) {
  alignas(64) float memory[16] = {1, 2, 3};
  const int64_t dims[] = {16};
  ARGS(Client_BufferFromHostBuffer, args);
  args.client = client_;
  args.data = memory;
  args.type = PJRT_Buffer_Type_F32;
  args.dims = dims;
  args.num_dims = 1;
  args.device = device_;
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableZeroCopy;
  CALL(Client_BufferFromHostBuffer, args);
  EXPECT_EQ(address(args.buffer), reinterpret_cast<uintptr_t>(memory));
  ARGS(Event_IsReady, ready);
  ready.event = args.done_with_host_buffer;
  CALL(Event_IsReady, ready);
  EXPECT_FALSE(ready.is_ready);
  free_buffer(args.buffer);
  CALL(Event_IsReady, ready);
  EXPECT_TRUE(ready.is_ready);
  free_event(args.done_with_host_buffer);
}

// Callers may hand in structs whose outputs hold anything.
TEST_F(Driver, StatisticsAreWrittenWhole) {
  PJRT_Device_MemoryStats_Args memory;
  std::memset(&memory, 0x7f, sizeof memory);
  memory.struct_size = PJRT_Device_MemoryStats_Args_STRUCT_SIZE;
  memory.extension_start = nullptr;
  memory.device = device_;
  CALL(Device_MemoryStats, memory);
  EXPECT_EQ(memory.bytes_in_use, 0);
  EXPECT_TRUE(memory.peak_bytes_in_use_is_set);
  EXPECT_FALSE(memory.bytes_limit_is_set);
  EXPECT_FALSE(memory.peak_pool_bytes_is_set);

  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(compile(golden("axpy.mlir.bc"), &executable).message, "");
  ARGS(LoadedExecutable_GetExecutable, get);
  get.loaded_executable = executable;
  CALL(LoadedExecutable_GetExecutable, get);
  PJRT_Executable_GetCompiledMemoryStats_Args compiled;
  std::memset(&compiled, 0x7f, sizeof compiled);
  compiled.struct_size = PJRT_Executable_GetCompiledMemoryStats_Args_STRUCT_SIZE;
  compiled.extension_start = nullptr;
  compiled.executable = get.executable;
  CALL(Executable_GetCompiledMemoryStats, compiled);
  EXPECT_EQ(compiled.argument_size_in_bytes, 48);
  EXPECT_EQ(compiled.output_size_in_bytes, 28);
  EXPECT_EQ(compiled.alias_size_in_bytes, 24);
  EXPECT_EQ(compiled.host_temp_size_in_bytes, 0);
  ARGS(Executable_Destroy, destroy);
  destroy.executable = get.executable;
  CALL(Executable_Destroy, destroy);
  free_executable(executable);
}

TEST_F(Driver, SinksAreKept) {
  ARGS(Plugin_Initialize, initialize);
  CALL(Plugin_Initialize, initialize);
  PJRT_LoadedExecutable* executable = nullptr;
  const char* code =
      "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
      "  %0 = stablehlo.negate %x : tensor<2xf32>\n"
      "  stablehlo.custom_call @dce_sink(%0) {has_side_effect = true} : (tensor<2xf32>) -> ()\n"
      "  return %x : tensor<2xf32>\n"
      "}\n";
  ASSERT_EQ(compile(code, &executable).message, "");
  PJRT_Buffer* x = buffer({1, 2}, {2});
  std::vector<PJRT_Buffer*> results(1);
  ASSERT_EQ(execute(executable, {x}, results).message, "");
  EXPECT_THAT(values(results[0]), ElementsAre(1, 2));
  for (PJRT_Buffer* each : {x, results[0]}) free_buffer(each);
  free_executable(executable);
}

TEST_F(Driver, EventsOfTheCaller) {
  ARGS(Event_Create, create);
  CALL(Event_Create, create);
  std::string told;
  ARGS(Event_OnReady, on_ready);
  on_ready.event = create.event;
  on_ready.user_arg = &told;
  on_ready.callback = [](PJRT_Error* error, void* argument) {
    *static_cast<std::string*>(argument) = outcome(error).message;
  };
  CALL(Event_OnReady, on_ready);
  EXPECT_EQ(told, "");
  ARGS(Event_Set, set);
  set.event = create.event;
  set.error_code = PJRT_Error_Code_ABORTED;
  set.error_message = "enough";
  set.error_message_size = 6;
  CALL(Event_Set, set);
  EXPECT_EQ(told, "enough");
  EXPECT_EQ(outcome(api().PJRT_Event_Set(&set)).code, PJRT_Error_Code_FAILED_PRECONDITION);
  ARGS(Event_Await, await);
  await.event = create.event;
  EXPECT_EQ(outcome(api().PJRT_Event_Await(&await)).code, PJRT_Error_Code_ABORTED);
  free_event(create.event);
}

}  // namespace
}  // namespace heddle::pjrt
