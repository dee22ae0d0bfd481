// GetPjrtApi: the table of functions.
#include "call.h"
#include "functions.h"
#include "layouts.h"

namespace heddle::pjrt {
namespace {

PJRT_Error* missing(const char* name) noexcept {
  return make_error({PJRT_Error_Code_UNIMPLEMENTED,
                     std::string(name) + " is not implemented by heddle's PJRT plug-in"});
}

void destroy_error(PJRT_Error_Destroy_Args* args) {
  if (args != nullptr) free_error(args->error);
}

void error_message(PJRT_Error_Message_Args* args) {
  if (args == nullptr || args->error == nullptr) return;
  args->message = args->error->message.c_str();
  args->message_size = args->error->message.size();
}

PJRT_Api make_api() {
  PJRT_Api api{};
  api.struct_size = PJRT_Api_STRUCT_SIZE;
  api.extension_start = layouts_extension(nullptr);
  api.pjrt_api_version = {PJRT_Api_Version_STRUCT_SIZE, nullptr, PJRT_API_MAJOR, PJRT_API_MINOR};
  api.PJRT_Error_Destroy = destroy_error;
  api.PJRT_Error_Message = error_message;
#define FUNCTION(name)                                      \
  api.PJRT_##name = [](PJRT_##name##_Args* args) noexcept { \
    return guarded("PJRT_" #name, args, name);              \
  };
#define MISSING(name) \
  api.PJRT_##name = [](PJRT_##name##_Args*) noexcept { return missing("PJRT_" #name); };
#include "functions.def"
#undef FUNCTION
#undef MISSING
  return api;
}

// What jaxlib writes programs for: StableHLO up to the newest that heddle reads.
constexpr int64_t kNewestStablehlo[] = {1, 20, 0};
constexpr int64_t kOldestStablehlo[] = {0, 9, 0};

PJRT_NamedValue named(const char* name) {
  PJRT_NamedValue value{};
  value.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  value.name = name;
  value.name_size = std::strlen(name);
  return value;
}
PJRT_NamedValue version(const char* name, const int64_t (&numbers)[3]) {
  PJRT_NamedValue value = named(name);
  value.type = PJRT_NamedValue_kInt64List;
  value.int64_array_value = numbers;
  value.value_size = 3;
  return value;
}
PJRT_NamedValue number(const char* name, int64_t is) {
  PJRT_NamedValue value = named(name);
  value.type = PJRT_NamedValue_kInt64;
  value.int64_value = is;
  value.value_size = 1;
  return value;
}

}  // namespace

void Plugin_Initialize(PJRT_Plugin_Initialize_Args& args) {
  // lax.dce_sink: keeps a value from being dropped, and does nothing with it.
  heddle_register_custom_call(
      "dce_sink", [](const heddle_custom_call*, void*) -> int32_t { return 0; }, nullptr);
}

void Plugin_Attributes(PJRT_Plugin_Attributes_Args& args) {
  static const PJRT_NamedValue attributes[] = {
      number("xla_version", 2),
      version("stablehlo_current_version", kNewestStablehlo),
      version("stablehlo_minimum_version", kOldestStablehlo),
  };
  args.attributes = attributes;
  args.num_attributes = std::size(attributes);
}

}  // namespace heddle::pjrt

extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
  static const PJRT_Api api = heddle::pjrt::make_api();
  return &api;
}
