// Coverage-guided damage to model files (libFuzzer; script/fuzz): whatever the bytes are, the
// reader gives a module that verifies, or the user's error in one line. Built once for each format:
// HEDDLE_FUZZ_FORMAT is a value of import::Format, and bytes of other formats are not looked at.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "hlo/verify.h"
#include "import/hlo_proto.h"
#include "import/onnx.h"
#include "import/stablehlo.h"

namespace heddle {
namespace {

constexpr import::Format kFormat = import::Format::HEDDLE_FUZZ_FORMAT;

[[noreturn]] void fault(const std::string& what) {
  std::fprintf(stderr, "fault: %s\n", what.c_str());
  std::abort();
}

Result<import::Imported> read(std::string_view bytes) {
  import::Options options;
  options.max_value_elems = 1 << 16;
  options.max_nodes = 1 << 12;
  switch (kFormat) {
    case import::Format::onnx:
      return import::import_onnx_bytes(bytes, {}, options);
    case import::Format::hlo_text:
      return import::import_hlo_text(bytes, options);
    case import::Format::hlo_proto:
      return import::import_hlo_proto(bytes, nullptr, options);
    default:
      return import::import_stablehlo_bytes(bytes, options);
  }
}

}  // namespace
}  // namespace heddle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace heddle;  // NOLINT
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (import::sniff(bytes) != kFormat) return -1;  // not kept in the corpus
  const auto imported = read(bytes);
  if (imported) {
    if (Status verified = hlo::verify(*imported->module); !verified)
      fault("a module that does not verify: " + verified.error().message);
    return 0;
  }
  const Error& error = imported.error();
  if (whose(error.kind) != ErrorKind::user) fault("not the user's error: " + error.message);
  if (error.message.empty() || error.message.find('\n') != std::string::npos)
    fault("an error of no or several lines: " + error.message);
  return 0;
}
