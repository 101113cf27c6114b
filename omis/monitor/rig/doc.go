//go:build linux && amd64

// Package rig has what tests of placements need: targets that do a known number of
// everything, and a monitor, whole but for the gateway, that has attached to one of them and
// places its programs in one way.
//
// Tests of omis/place and of its packages import it, nothing else.
package rig
