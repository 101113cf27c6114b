// Package cli is the command line: one file for each command. It is also where
// the parts of the house are joined (join*.go): the node, the engine with its
// extensions, the probes and the gateway meet here and nowhere else. Only main
// imports it.
//
// A command runs on the goroutine of Main and ends with it; serve and demo own
// the monitor and close it before they return.
package cli
