// For tests: a stand-in for tiles (AMX) on processors that have none. Their instructions raise
// SIGILL there; a handler reads the bytes and does what they say, for each thread. What is not one
// of them ends the process as before. As a library (libtiles_stand_in.so, LD_PRELOAD) it makes the
// host a processor with tiles for all that asks target/host.cc.
#pragma once

namespace heddle::testing {

// Once for the process.
void stand_in_for_tiles();

}  // namespace heddle::testing
