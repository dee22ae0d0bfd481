#include "layouts.h"

#include <string>

#include "buffer.h"
#include "call.h"
#include "executable.h"
#include "xla/pjrt/c/pjrt_c_api_layouts_extension.h"

struct PJRT_Layouts_MemoryLayout {
  std::string text;      // as XLA writes it: "{1,0}"
  bool is_owned = true;  // by the caller
};

namespace heddle::pjrt {
namespace {

PJRT_Layouts_MemoryLayout* row_major(size_t rank, bool is_owned = true) {
  std::string text = "{";
  for (size_t i = rank; i-- > 0;) text += std::to_string(i) + (i > 0 ? "," : "");
  return new PJRT_Layouts_MemoryLayout{text + "}", is_owned};
}

// Of all arrays of a rank; for lists, which stay the executable's.
PJRT_Layouts_MemoryLayout* shared_row_major(size_t rank) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<PJRT_Layouts_MemoryLayout>> by_rank;
  const std::lock_guard lock(mutex);
  if (by_rank.size() <= rank) by_rank.resize(rank + 1);
  if (by_rank[rank] == nullptr) by_rank[rank].reset(row_major(rank, false));
  return by_rank[rank].get();
}

PJRT_Error* destroy(PJRT_Layouts_MemoryLayout_Destroy_Args* args) {
  return guarded("PJRT_Layouts_MemoryLayout_Destroy", args, [](auto& mine) {
    if (mine.layout != nullptr && mine.layout->is_owned) delete mine.layout;
  });
}

PJRT_Error* serialize(PJRT_Layouts_MemoryLayout_Serialize_Args* args) {
  return guarded("PJRT_Layouts_MemoryLayout_Serialize", args, [](auto& mine) {
    auto* text = new std::string(given(mine.layout, "layout")->text);
    mine.serialized_bytes = text->data();
    mine.serialized_bytes_size = text->size();
    mine.serialized_layout = reinterpret_cast<PJRT_Layouts_SerializedLayout*>(text);
    mine.serialized_layout_deleter = [](PJRT_Layouts_SerializedLayout* layout) {
      delete reinterpret_cast<std::string*>(layout);
    };
  });
}

PJRT_Error* of_client(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args* args) {
  return guarded("PJRT_Layouts_PJRT_Client_GetDefaultLayout", args,
                 [](auto& mine) { mine.layout = row_major(mine.num_dims); });
}

PJRT_Error* of_topology(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args* args) {
  return guarded("PJRT_Layouts_PJRT_Topology_GetDefaultLayout", args,
                 [](auto& mine) { mine.layout = row_major(mine.num_dims); });
}

PJRT_Error* of_buffer(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args* args) {
  return guarded("PJRT_Layouts_PJRT_Buffer_MemoryLayout", args, [](auto& mine) {
    mine.layout = row_major(given(mine.buffer, "buffer")->shape.dims.size());
  });
}

PJRT_Error* of_outputs(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args* args) {
  return guarded("PJRT_Layouts_PJRT_Executable_GetOutputLayouts", args, [](auto& mine) {
    Executable& executable = *given(mine.executable, "executable")->executable;
    auto& layouts = executable.layouts;
    std::call_once(executable.layouts_once, [&] {
      for (const ArrayShape& shape : executable.outputs())
        layouts.push_back(shared_row_major(shape.dims.size()));
    });
    mine.num_outputs = layouts.size();
    mine.layouts = layouts.data();
  });
}

}  // namespace

PJRT_Extension_Base* layouts_extension(PJRT_Extension_Base* next) {
  static PJRT_Layouts_Extension extension{};
  extension.base = {PJRT_Layouts_Extension_STRUCT_SIZE, PJRT_Extension_Type_Layouts, next};
  extension.PJRT_Layouts_MemoryLayout_Destroy = destroy;
  extension.PJRT_Layouts_MemoryLayout_Serialize = serialize;
  extension.PJRT_Layouts_PJRT_Client_GetDefaultLayout = of_client;
  extension.PJRT_Layouts_PJRT_Buffer_MemoryLayout = of_buffer;
  extension.PJRT_Layouts_PJRT_Topology_GetDefaultLayout = of_topology;
  extension.PJRT_Layouts_PJRT_Executable_GetOutputLayouts = of_outputs;
  return &extension.base;
}

}  // namespace heddle::pjrt
