// hlo::Module as an HLO proto, HloModuleProto of openxla/xla's xla/service/hlo.proto, which XLA's
// tools and import/hlo_proto.h read. The fields are those of import/hlo_proto_fields.h.
//
// As in XLA, arrays without a layout get the default one, and names of instructions are made unique
// in the module. Ids are those of XLA: a computation's index; an instruction's index plus its
// computation's shifted above 32 bits. Information that has only a text form is written as frontend
// attributes (import/hlo_proto_header.h).
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "hlo/module.h"

namespace heddle::exports {

// The bytes; `notes` gets everything that has no field and was left out. Errors (user): malformed
// attributes kept as text; more than 2 GiB, the limit of a message.
Result<std::string> to_hlo_proto(const hlo::Module& module, std::vector<std::string>* notes);

}  // namespace heddle::exports
