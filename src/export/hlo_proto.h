// hlo::Module as an HLO proto, HloModuleProto of openxla/xla's xla/service/hlo.proto: what XLA's
// tools and import/hlo_proto.h read. The fields are those of import/hlo_proto_fields.h.
//
// As XLA does: arrays without a layout get the default one, and names of instructions are made
// unique in the module. Ids are those of XLA: a computation's place, an instruction's place with
// its computation's above 32 bits. What only text has travels as frontend attributes
// (import/hlo_proto_header.h).
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "hlo/module.h"

namespace heddle::exports {

// The bytes; `notes` gets what has no field and was left out. Errors (user): attributes kept as
// text that are not of their form; more than 2 GiB, which no message holds.
Result<std::string> to_hlo_proto(const hlo::Module& module, std::vector<std::string>* notes);

}  // namespace heddle::exports
