// Programs as text, for people and tests (not parsed back; the file format is file.h).
#pragma once

#include <string>

#include "program/program.h"

namespace heddle::program {

std::string to_string(const Program& program);

}  // namespace heddle::program
