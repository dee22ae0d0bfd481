// Executables: how they are made and what is told of them.
#include <cstring>

#include "call.h"
#include "executable.h"
#include "functions.h"

namespace heddle::pjrt {
namespace {

std::shared_ptr<Executable> compile(const Options& options, const PJRT_Program* of,
                                    const char* request, size_t request_size) {
  const auto program = read_struct(of, "program");
  const std::string format(given(program.format, "program->format"), program.format_size);
  if (format != "mlir" && format != "hlo")
    unimplemented("programs in the format '" + format + "'; wanted mlir or hlo");
  given(program.code, "program->code");
  if (request_size > 0) given(request, "compile_options");
  return Executable::compile(options, {program.code, program.code_size}, {request, request_size});
}

const Executable& of(const PJRT_Executable* executable) {
  return *given(executable, "executable")->executable;
}

// What a caller gets to read and to free.
template <typename Backing>
Backing* backing(std::string bytes, const char*& data, size_t& size) {
  auto* owned = new std::string(std::move(bytes));
  data = owned->data();
  size = owned->size();
  return reinterpret_cast<Backing*>(owned);
}
template <typename Backing>
void free_backing(Backing* owned) {
  delete reinterpret_cast<std::string*>(owned);
}

void tell(const std::string& text, const char*& data, size_t& size) {
  data = text.data();
  size = text.size();
}

}  // namespace

void Client_Compile(PJRT_Client_Compile_Args& args) {
  PJRT_Client* client = given(args.client, "client");
  args.executable = new PJRT_LoadedExecutable(
      client,
      compile(client->options, args.program, args.compile_options, args.compile_options_size));
}

void Compile(PJRT_Compile_Args& args) {
  const Options options = args.client != nullptr ? args.client->options : Options();
  args.executable = new PJRT_Executable{
      compile(options, args.program, args.compile_options, args.compile_options_size)};
}

void Executable_DeserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args& args) {
  PJRT_Client* client = given(args.client, "client");
  given(args.serialized_executable, "serialized_executable");
  args.loaded_executable = new PJRT_LoadedExecutable(
      client, Executable::load(client->options,
                               {args.serialized_executable, args.serialized_executable_size}));
}

void Executable_Serialize(PJRT_Executable_Serialize_Args& args) {
  args.serialized_executable = backing<PJRT_SerializedExecutable>(
      of(args.executable).serialize(), args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_executable_deleter = free_backing<PJRT_SerializedExecutable>;
}

void Executable_GetCompileOptions(PJRT_Executable_GetCompileOptions_Args& args) {
  args.serialized_compile_options = backing<PJRT_SerializedCompileOptions>(
      of(args.executable).request(), args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_compile_options_deleter = free_backing<PJRT_SerializedCompileOptions>;
}

// The program as it was given: what heddle makes of it has no HLO that another could read.
void Executable_OptimizedProgram(PJRT_Executable_OptimizedProgram_Args& args) {
  static constexpr const char* kFormat = "mlir";
  const std::string& code = of(args.executable).code();
  auto program = read_struct(args.program, "program");
  if (program.code != nullptr) {
    if (program.code_size < code.size())
      invalid("code_size is " + std::to_string(program.code_size) + ", the program has " +
              std::to_string(code.size()) + " bytes");
    std::memcpy(program.code, code.data(), code.size());
  }
  program.code_size = code.size();
  program.format = kFormat;
  program.format_size = std::strlen(kFormat);
  write_struct(program, args.program);
}

void Executable_Destroy(PJRT_Executable_Destroy_Args& args) { delete args.executable; }

void Executable_Name(PJRT_Executable_Name_Args& args) {
  tell(of(args.executable).name(), args.executable_name, args.executable_name_size);
}

void Executable_Fingerprint(PJRT_Executable_Fingerprint_Args& args) {
  tell(of(args.executable).fingerprint(), args.executable_fingerprint,
       args.executable_fingerprint_size);
}

void Executable_NumReplicas(PJRT_Executable_NumReplicas_Args& args) { args.num_replicas = 1; }
void Executable_NumPartitions(PJRT_Executable_NumPartitions_Args& args) { args.num_partitions = 1; }

void Executable_NumOutputs(PJRT_Executable_NumOutputs_Args& args) {
  args.num_outputs = of(args.executable).outputs().size();
}

void Executable_SizeOfGeneratedCodeInBytes(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args& args) {
  args.size_in_bytes = of(args.executable).info().object_bytes;
}

void Executable_GetCostAnalysis(PJRT_Executable_GetCostAnalysis_Args& args) {
  const Executable::Told& told = of(args.executable).told();
  args.properties = told.costs.data();
  args.num_properties = told.costs.size();
}

void Executable_GetCompiledMemoryStats(PJRT_Executable_GetCompiledMemoryStats_Args& args) {
  const Executable& executable = of(args.executable);
  const heddle_program_info info = executable.info();
  args = {args.struct_size, args.extension_start, args.executable};  // all sizes are 0
  args.generated_code_size_in_bytes = info.object_bytes;
  args.argument_size_in_bytes = info.input_bytes;
  args.output_size_in_bytes = info.output_bytes;
  args.temp_size_in_bytes = info.temporary_bytes;
  for (size_t i = 0; i < executable.outputs().size(); ++i)
    if (executable.donors()[i] >= 0) args.alias_size_in_bytes += executable.outputs()[i].bytes;
  args.peak_memory_in_bytes = info.input_bytes + info.output_bytes - args.alias_size_in_bytes +
                              info.temporary_bytes + info.constant_bytes;
  args.total_size_in_bytes = args.peak_memory_in_bytes + info.object_bytes;
}

void Executable_OutputElementTypes(PJRT_Executable_OutputElementTypes_Args& args) {
  const Executable::Told& told = of(args.executable).told();
  args.output_types = const_cast<PJRT_Buffer_Type*>(told.types.data());
  args.num_output_types = told.types.size();
}

void Executable_OutputDimensions(PJRT_Executable_OutputDimensions_Args& args) {
  const Executable::Told& told = of(args.executable).told();
  args.num_outputs = told.ranks.size();
  args.dims = told.dims.data();
  args.dim_sizes = told.ranks.data();
}

void Executable_OutputMemoryKinds(PJRT_Executable_OutputMemoryKinds_Args& args) {
  const Executable::Told& told = of(args.executable).told();
  args.num_outputs = told.memory_kinds.size();
  args.memory_kinds = told.memory_kinds.data();
  args.memory_kind_sizes = told.memory_kind_sizes.data();
}

void LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args& args) { delete args.executable; }

void LoadedExecutable_GetExecutable(PJRT_LoadedExecutable_GetExecutable_Args& args) {
  args.executable = new PJRT_Executable{live(args.loaded_executable)};
}

void LoadedExecutable_AddressableDevices(PJRT_LoadedExecutable_AddressableDevices_Args& args) {
  args.addressable_devices = given(args.executable, "executable")->client->devices;
  args.num_addressable_devices = 1;
}

void LoadedExecutable_Delete(PJRT_LoadedExecutable_Delete_Args& args) {
  given(args.executable, "executable")->drop();
}

void LoadedExecutable_IsDeleted(PJRT_LoadedExecutable_IsDeleted_Args& args) {
  args.is_deleted = given(args.executable, "executable")->executable() == nullptr;
}

void LoadedExecutable_Fingerprint(PJRT_LoadedExecutable_Fingerprint_Args& args) {
  tell(live(args.executable)->fingerprint(), args.executable_fingerprint,
       args.executable_fingerprint_size);
}

// A DeviceAssignmentProto: one replica, one computation, on device 0.
void LoadedExecutable_GetDeviceAssignment(PJRT_LoadedExecutable_GetDeviceAssignment_Args& args) {
  static constexpr char kAssignment[] = "\x08\x01\x10\x01\x1a\x03\x0a\x01\x00";
  given(args.executable, "executable");
  args.serialized_bytes = kAssignment;
  args.serialized_bytes_size = sizeof kAssignment - 1;
  args.serialized_device_assignment = nullptr;
  args.serialized_device_assignment_deleter = [](PJRT_DeviceAssignmentSerialized*) {};
}

}  // namespace heddle::pjrt
