/* Static tracepoints for lttng-ust. The macros include this file several times. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER mirador_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./provider.h"

#if !defined(MIRADOR_BENCH_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define MIRADOR_BENCH_PROVIDER_H
#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(mirador_bench, entry, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())
LTTNG_UST_TRACEPOINT_EVENT(mirador_bench, exit, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())

#endif

#include <lttng/tracepoint-event.h>
