/*
 * Functions of Triton's C API that came after backend API 1.0. A server may lack any of them: each is asked for at run
 * time, and Gesso does without it where it is missing. Same rules as triton.h.
 */
#ifndef GESSO_TRITON_NEWER_H
#define GESSO_TRITON_NEWER_H

#include "triton.h"

/** Answers to what the server asks about a backend before it places models. */
typedef struct TRITONBACKEND_BackendAttribute TRITONBACKEND_BackendAttribute;
/** What the server writes of one request where it traces. */
typedef struct TRITONSERVER_InferenceTrace TRITONSERVER_InferenceTrace;
/** A name and a value. */
typedef struct TRITONSERVER_Parameter TRITONSERVER_Parameter;
/** Metrics of one name on the server's metrics port. */
typedef struct TRITONSERVER_MetricFamily TRITONSERVER_MetricFamily;
/** One metric of a family, told apart by its labels. */
typedef struct TRITONSERVER_Metric TRITONSERVER_Metric;

/** Types of the value of a parameter. */
typedef enum TRITONSERVER_ParameterType {
  TRITONSERVER_PARAMETER_STRING = 0
} TRITONSERVER_ParameterType;

/** Kinds of metrics. */
typedef enum TRITONSERVER_MetricKind {
  /** A number that only grows. */
  TRITONSERVER_METRIC_KIND_COUNTER = 0
} TRITONSERVER_MetricKind;

/**
 * Where models go that do not say it themselves; the first call is the most preferred. `count` 0 and `devices` NULL
 * stand for the server's defaults.
 */
TRITONSERVER_Error* TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    TRITONBACKEND_BackendAttribute* attributes, TRITONSERVER_InstanceGroupKind kind, uint64_t count,
    const uint64_t* devices, uint64_t device_count);
/** Whether instances of a model may be initialized at the same time. */
TRITONSERVER_Error* TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    TRITONBACKEND_BackendAttribute* attributes, bool enabled);

/** Bits of TRITONBACKEND_RequestFlags. */
typedef enum TRITONSERVER_RequestFlag {
  /** The first request of a sequence. */
  TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1,
  /** The last request of a sequence. */
  TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
} TRITONSERVER_RequestFlag;

/** Which sequence the request belongs to; 0 for none. An error where sequences are named by text. */
TRITONSERVER_Error* TRITONBACKEND_RequestCorrelationId(TRITONBACKEND_Request* request, uint64_t* id);
/** The same where sequences are named by text; empty for none. An error where they are named by numbers. */
TRITONSERVER_Error* TRITONBACKEND_RequestCorrelationIdString(TRITONBACKEND_Request* request, const char** id);
/** Where the request stands in its sequence. */
TRITONSERVER_Error* TRITONBACKEND_RequestFlags(TRITONBACKEND_Request* request, uint32_t* flags);
/** Whether the client no longer waits for the request. */
TRITONSERVER_Error* TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request* request, bool* cancelled);
/** How many parameters the request has: those that its client gave it, behind them the headers that the server hands
 *  on. */
TRITONSERVER_Error* TRITONBACKEND_RequestParameterCount(TRITONBACKEND_Request* request, uint32_t* count);
/** Name, type and value (of a string, its text) of a parameter; they live as long as the request. */
TRITONSERVER_Error* TRITONBACKEND_RequestParameter(
    TRITONBACKEND_Request* request, uint32_t index, const char** name, TRITONSERVER_ParameterType* type,
    const void** value);

/** The trace of a request, which lives as long as the request; NULL where the server does not trace it. An error where
 *  the server was built without tracing. */
TRITONSERVER_Error* TRITONBACKEND_RequestTrace(TRITONBACKEND_Request* request, TRITONSERVER_InferenceTrace** trace);
/** Adds an event, at a time by the clock of statistics. OpenTelemetry gets a span from `NAME_START` to `NAME_END`. */
TRITONSERVER_Error* TRITONSERVER_InferenceTraceReportActivity(
    TRITONSERVER_InferenceTrace* trace, uint64_t timestamp_ns, const char* activity_name);

/** Makes a parameter; name and value (for a string, its text) are copied. NULL for a type that the server does not
 *  know. */
TRITONSERVER_Parameter* TRITONSERVER_ParameterNew(
    const char* name, TRITONSERVER_ParameterType type, const void* value);
/** Frees a parameter. */
void TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter* parameter);
/** Makes a family of metrics, or another handle to the one of this name. An error if the server has no metrics. */
TRITONSERVER_Error* TRITONSERVER_MetricFamilyNew(
    TRITONSERVER_MetricFamily** family, TRITONSERVER_MetricKind kind, const char* name, const char* description);
/** Makes a metric that starts at 0, or another handle to the one with these labels, which are copied. */
TRITONSERVER_Error* TRITONSERVER_MetricNew(
    TRITONSERVER_Metric** metric, TRITONSERVER_MetricFamily* family, const TRITONSERVER_Parameter** labels,
    uint64_t label_count);
/** Frees a handle to a metric; it is no longer shown when that was the last one. */
TRITONSERVER_Error* TRITONSERVER_MetricDelete(TRITONSERVER_Metric* metric);
/** Adds to a metric; from any thread. */
TRITONSERVER_Error* TRITONSERVER_MetricIncrement(TRITONSERVER_Metric* metric, double value);

#endif
