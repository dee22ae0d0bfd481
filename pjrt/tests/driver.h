// Plays jaxlib against the plug-in's library: each function of the table with its struct.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "xla/pjrt/c/pjrt_c_api.h"

namespace heddle::pjrt {

// A function of the library, or of libheddle.so, which it brings.
inline void* symbol(const char* name) {
  static void* const library = [] {
    void* opened = dlopen(HEDDLE_PJRT_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) throw std::runtime_error(dlerror());
    return opened;
  }();
  return dlsym(library, name);
}

inline const PJRT_Api& api() {
  static const PJRT_Api* const table =
      reinterpret_cast<const PJRT_Api* (*)()>(symbol("GetPjrtApi"))();
  return *table;
}

// What a function returned; "" where it did well.
struct Outcome {
  PJRT_Error_Code code = PJRT_Error_Code_OK;
  std::string message;
};

inline Outcome outcome(PJRT_Error* error) {
  if (error == nullptr) return {};
  PJRT_Error_Message_Args message{PJRT_Error_Message_Args_STRUCT_SIZE, nullptr, error, nullptr, 0};
  api().PJRT_Error_Message(&message);
  PJRT_Error_GetCode_Args code{PJRT_Error_GetCode_Args_STRUCT_SIZE, nullptr, error,
                               PJRT_Error_Code_OK};
  api().PJRT_Error_GetCode(&code);
  Outcome result{code.code, std::string(message.message, message.message_size)};
  PJRT_Error_Destroy_Args destroy{PJRT_Error_Destroy_Args_STRUCT_SIZE, nullptr, error};
  api().PJRT_Error_Destroy(&destroy);
  return result;
}

// A struct of arguments of this header's size, and the call with it, which has to do well.
#define ARGS(name, args)     \
  PJRT_##name##_Args args{}; \
  args.struct_size = PJRT_##name##_Args_STRUCT_SIZE
#define CALL(name, args)                                             \
  do {                                                               \
    const Outcome got = outcome(api().PJRT_##name(&args));           \
    ASSERT_EQ(got.code, PJRT_Error_Code_OK) << #name << got.message; \
  } while (false)

class Driver : public testing::Test {
 protected:
  void SetUp() override {
    ARGS(Client_Create, create);
    PJRT_NamedValue options[2] = {text_option("cache", "off"), text_option("level", "O1")};
    create.create_options = options;
    create.num_options = 2;
    CALL(Client_Create, create);
    client_ = create.client;
    ARGS(Client_AddressableDevices, devices);
    devices.client = client_;
    CALL(Client_AddressableDevices, devices);
    ASSERT_EQ(devices.num_addressable_devices, 1U);
    device_ = devices.addressable_devices[0];
  }
  void TearDown() override {
    ARGS(Client_Destroy, destroy);
    destroy.client = client_;
    CALL(Client_Destroy, destroy);
  }

  static PJRT_NamedValue text_option(const char* name, const char* value) {
    PJRT_NamedValue option{};
    option.struct_size = PJRT_NamedValue_STRUCT_SIZE;
    option.name = name;
    option.name_size = std::strlen(name);
    option.type = PJRT_NamedValue_kString;
    option.string_value = value;
    option.value_size = std::strlen(value);
    return option;
  }

  static std::string golden(const char* name) {
    std::ifstream file(std::string(HEDDLE_PJRT_TESTDATA) + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  Outcome compile(const std::string& code, PJRT_LoadedExecutable** executable,
                  const std::string& request = "", const std::string& format = "mlir") {
    ARGS(Client_Compile, args);
    PJRT_Program program{};
    program.struct_size = PJRT_Program_STRUCT_SIZE;
    program.code = const_cast<char*>(code.data());
    program.code_size = code.size();
    program.format = format.data();
    program.format_size = format.size();
    args.client = client_;
    args.program = &program;
    args.compile_options = request.data();
    args.compile_options_size = request.size();
    const Outcome result = outcome(api().PJRT_Client_Compile(&args));
    *executable = args.executable;
    return result;
  }

  PJRT_Buffer* buffer(const std::vector<float>& values, std::vector<int64_t> dims) {
    ARGS(Client_BufferFromHostBuffer, args);
    args.client = client_;
    args.data = values.data();
    args.type = PJRT_Buffer_Type_F32;
    args.dims = dims.data();
    args.num_dims = dims.size();
    args.device = device_;
    args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
    const Outcome got = outcome(api().PJRT_Client_BufferFromHostBuffer(&args));
    EXPECT_EQ(got.code, PJRT_Error_Code_OK) << got.message;
    free_event(args.done_with_host_buffer);
    return args.buffer;
  }

  // And waits for its end.
  Outcome execute(PJRT_LoadedExecutable* executable, const std::vector<PJRT_Buffer*>& arguments,
                  std::vector<PJRT_Buffer*>& results, std::vector<int64_t> kept = {}) {
    PJRT_Event* done = nullptr;
    const Outcome result = start(executable, arguments, results, &done, std::move(kept));
    return result.code == PJRT_Error_Code_OK ? await(done) : result;
  }

  // Waits for an event and frees it.
  static Outcome await(PJRT_Event* event) {
    ARGS(Event_Await, args);
    args.event = event;
    const Outcome result = outcome(api().PJRT_Event_Await(&args));
    free_event(event);
    return result;
  }

  static Outcome start(PJRT_LoadedExecutable* executable,
                       const std::vector<PJRT_Buffer*>& arguments,
                       std::vector<PJRT_Buffer*>& results, PJRT_Event** done,
                       std::vector<int64_t> kept = {}) {
    PJRT_ExecuteOptions options{};
    options.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE;
    options.non_donatable_input_indices = kept.data();
    options.num_non_donatable_input_indices = kept.size();
    ARGS(LoadedExecutable_Execute, args);
    PJRT_Buffer* const* list = arguments.data();
    PJRT_Buffer** outputs = results.data();
    args.executable = executable;
    args.options = &options;
    args.argument_lists = &list;
    args.num_devices = 1;
    args.num_args = arguments.size();
    args.output_lists = &outputs;
    args.device_complete_events = done;
    return outcome(api().PJRT_LoadedExecutable_Execute(&args));
  }

  static std::vector<float> values(PJRT_Buffer* from) {
    ARGS(Buffer_ToHostBuffer, args);
    args.src = from;
    EXPECT_EQ(outcome(api().PJRT_Buffer_ToHostBuffer(&args)).message, "");
    std::vector<float> result(args.dst_size / sizeof(float));
    args.dst = result.data();
    EXPECT_EQ(outcome(api().PJRT_Buffer_ToHostBuffer(&args)).message, "");
    EXPECT_EQ(await(args.event).message, "");
    return result;
  }

  static bool is_deleted(PJRT_Buffer* what) {
    ARGS(Buffer_IsDeleted, args);
    args.buffer = what;
    EXPECT_EQ(outcome(api().PJRT_Buffer_IsDeleted(&args)).message, "");
    return args.is_deleted;
  }

  static uintptr_t address(PJRT_Buffer* what) {
    ARGS(Buffer_UnsafePointer, args);
    args.buffer = what;
    EXPECT_EQ(outcome(api().PJRT_Buffer_UnsafePointer(&args)).message, "");
    return args.buffer_pointer;
  }

  static void free_event(PJRT_Event* event) {
    ARGS(Event_Destroy, args);
    args.event = event;
    EXPECT_EQ(api().PJRT_Event_Destroy(&args), nullptr);
  }
  static void free_buffer(PJRT_Buffer* what) {
    ARGS(Buffer_Destroy, args);
    args.buffer = what;
    EXPECT_EQ(api().PJRT_Buffer_Destroy(&args), nullptr);
  }
  static void free_executable(PJRT_LoadedExecutable* what) {
    ARGS(LoadedExecutable_Destroy, args);
    args.executable = what;
    EXPECT_EQ(api().PJRT_LoadedExecutable_Destroy(&args), nullptr);
  }

  PJRT_Client* client_ = nullptr;
  PJRT_Device* device_ = nullptr;
};

}  // namespace heddle::pjrt
