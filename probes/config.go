package probes

import (
	"context"
	"log/slog"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/omis"
)

// Config joins the registry to the monitor and to what knows programs.
type Config struct {
	// Node is the name of the node to work on, as node_attach2 takes it.
	Node string
	// NewTool connects an application to the monitor, under its name.
	NewTool func(name string) (omis.Tool, error)
	// ProgramName is the name of the program that a process executes, "" where
	// it cannot be known. Applications are named after it.
	ProgramName func(pid int) string
	// Modules lists the modules of a live process with their structure, the
	// main module first. It is asked for each request that names a region, so
	// it should keep the structures of programs it has read.
	Modules func(ctx context.Context, pid int) ([]translate.Module, error)
	// Resolver puts addresses of a process into words, as the process is now.
	Resolver func(ctx context.Context, pid int) (func(pc uint64, first bool) string, error)
	// Placement says where a conditional request of a tool runs, or would run;
	// nil where the monitor does not tell.
	Placement func(tool omis.Tool, request string) (mir.Placement, error)
	// Placed says the same of a request that was defined.
	Placed func(tool omis.Tool, request omis.Token) (mir.Placement, error)
	// Heritage joins the registry to what a killed gateway has left; nil: nothing is
	// left.
	Heritage *Heritage
	// Spent says what requests of a tool have cost the processes that they were enabled
	// in; nil where the monitor does not tell.
	Spent func(tool omis.Tool, requests []omis.Token) (omis.Spending, error)
	// Log takes what nobody waits for an answer to; nil is slog.Default.
	Log *slog.Logger
}
