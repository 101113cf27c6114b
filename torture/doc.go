// Command torture makes a gateway plant, activate, deactivate, read and remove probes at random, at
// every function of real programs and of their libraries, while the programs work; and it kills the
// gateway from time to time. The results of the programs must be the same as without probes, and
// programs that count their own calls must have counted as many as the probes did. At the end every
// byte of their code must be unchanged. One of the programs keeps values below its stack pointer,
// in flags and in vector registers, and is probed at every instruction. Meanwhile another tool sets
// and removes uprobes at the beginnings of functions.
//
//	torture -places N [-ways LIST] [-time 10m] [-seed N] [-mirador FILE]
//	torture [-time 10m] [-kills N] [-placements LIST] [-programs LIST] [-seed N] [-mirador FILE]
//
// With -places it plants probes at every instruction of generated functions instead; see package sweep.
//
// Otherwise it uses only requests to "mirador serve", like any other tool. No package imports it.
// Each victim has three goroutines: a checker, which makes it work round after round and owns the
// probes whose counts are compared; a disturber, which owns all other probes; and another tool. One
// more goroutine kills the gateway.
package main
