// Command torture has a gateway plant, activate, deactivate, read and remove probes
// at random, over every function of real programs and of their libraries, while the
// programs work; and kills the gateway every now and then. The programs judge: their
// results must be the same as when nobody looks, and those that count calls of
// themselves must have counted the same as the probes did. In the end every byte of
// their code must be what it was. One of the programs keeps values below its stack
// pointer, in flags and in vector registers, and is probed at every instruction. Another
// tool's uprobes come and go at the beginnings of functions meanwhile.
//
//	torture -places N [-ways LIST] [-time 10m] [-seed N] [-mirador FILE]
//	torture [-time 10m] [-kills N] [-placements LIST] [-programs LIST] [-seed N] [-mirador FILE]
//
// With -places it plants probes at every instruction of generated functions instead: see
// package sweep.
//
// Everything else goes through requests to "mirador serve", as any tool sends them.
// Nothing imports it. Goroutines: of every victim a judge, which has it work round
// after round and owns the probes that are compared, and a tormentor, which owns all
// others, and a neighbour, which is the other tool; one more kills.
package main
