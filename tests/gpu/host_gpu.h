/* What the stand-in GPU (host_gpu.cc) has beside the functions of libcuda and libnvrtc. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif
/* Bytes that crossed between the host and the device so far; bytes copied within the device. */
long long host_gpu_crossed(void);
long long host_gpu_copied(void);
long long host_gpu_launches(void); /* those of graphs, too */
long long host_gpu_calls(void);    /* of cuLaunchKernel */
long long host_gpu_replays(void);  /* of cuGraphLaunch */
long long host_gpu_live(void); /* allocations, modules, streams, events and graphs not given back */
#ifdef __cplusplus
}
#endif
