// Package cli contains the commands, one file each. The files join*.go join the monitor with the
// probes and the gateway; no other package does this. Only main imports cli.
//
// A command runs on the goroutine of Main. The commands serve and demo open the monitor and close
// it before they return.
package cli
