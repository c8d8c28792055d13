// The PE level: the verbs between GPUs, inside kernels. See the headers included for each part.
#pragma once
#include "pe/collective.cuh"
