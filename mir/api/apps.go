// Package api defines the JSON documents of the gateway, which are no documents of MIR:
// applications and probes. Package probes fills them in, the gateway writes them, and
// mir/client reads them. It starts no goroutines.
package api

import (
	"time"

	"mirador/omis"
)

// App describes an application.
type App struct {
	Name      string    `json:"name"`
	State     string    `json:"state"`
	Owner     int       `json:"owner"` // uid of all its processes; 0 (root) if they belong to several users
	Processes []Process `json:"processes"`
	// Continues is when a lease continues the paused processes; nil: never.
	Continues *time.Time `json:"continues,omitempty"`
}

// Process describes a process of an application.
type Process struct {
	Token   omis.Token `json:"token"`
	PID     int        `json:"pid"`
	Start   uint64     `json:"start,omitempty"` // distinguishes it from others of this pid; 0 if no journal is kept
	UID     int        `json:"uid"`
	Argv    []string   `json:"argv,omitempty"`
	Started bool       `json:"started"`          // by the monitor
	Gone    bool       `json:"gone"`             // it has terminated
	Paused  string     `json:"paused,omitempty"` // where it waits to be continued for the first time; "": it does not
}

// AppRequest is the body of POST /apps: a program to start, processes to attach to, or both.
type AppRequest struct {
	Name   string         `json:"name,omitempty"`
	Launch *LaunchRequest `json:"launch,omitempty"`
	Attach []int          `json:"attach,omitempty"`
	// Paused stops the program before it runs anything of its own, until it is continued.
	Paused bool `json:"paused,omitempty"`
	// Lease continues a paused program when no document was sent to its application for this
	// time, such as "10m".
	Lease string `json:"lease,omitempty"`
	// Alone excludes the processes that the attached ones have forked and will fork.
	Alone bool `json:"alone,omitempty"`
	// Follow includes the processes that the processes fork from now on. It is implied if
	// the attached processes have forked others already.
	Follow bool `json:"follow,omitempty"`
}

// LaunchRequest describes a program to start.
type LaunchRequest struct {
	Path   string   `json:"path"` // absolute
	Args   []string `json:"args,omitempty"`
	Env    []string `json:"env,omitempty"`
	Dir    string   `json:"dir,omitempty"`
	Stdin  string   `json:"stdin,omitempty"` // files; if they are missing, the streams of the gateway
	Stdout string   `json:"stdout,omitempty"`
	Stderr string   `json:"stderr,omitempty"`
}
