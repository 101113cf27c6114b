package main

// item is something that a target must survive, with the tests that check this.
// doc/survival.md contains the same table; a test compares the two.
type item struct {
	name  string
	pkg   string
	tests []string
}

const (
	machine = "./omis/linux"
	kernel  = "./omis/place/kernel"
	gateway = "./cli"
)

func items() []item {
	return []item{
		{"200 threads come and go", machine, []string{"TestLives/churn", "TestLivesKilled/churn"}},
		{"fork storms, the children followed", machine, []string{"TestLives/forks", "TestLivesKilled/forks", "TestFamily/fork", "TestBirth", "TestNewbornIsKept", "TestBirthKilled", "TestKilledCreator"}},
		{"a thread executes a program", machine, []string{"TestLives/exec", "TestLivesKilled/exec", "TestExecStorm", "TestExecveWhileAttaching"}},
		{"vfork, posix_spawn", machine, []string{"TestFamily/vfork", "TestFamily/spawn"}},
		{"the first thread leaves first", machine, []string{"TestLives/leader", "TestLivesKilled/leader"}},
		{"group stops, SIGSTOP and SIGCONT by others", machine, []string{"TestLives/stops", "TestLivesKilled/stops", "TestStoppedByOthers"}},
		{"signals at full rate", machine, []string{"TestSignals", "TestBlockedTrap", "TestBlockedTrapKilled", "TestHeldSignalKilled", "TestOwnTraps", "TestGoSignalsKilled"}},
		{"every kind of wait is interrupted", machine, []string{"TestWaiting"}},
		{"a target that ptraces", machine, []string{"TestLives/tracer", "TestLivesKilled/tracer"}},
		{"setuid, set-user-ID programs", machine, []string{"TestIdentityGivenUp", "TestSetUserID", "TestSetUserIDUnprivileged"}},
		{"a 32-bit program", machine, []string{"Test32Bit"}},
		{"traced by another; a zombie; a kernel thread", machine, []string{"TestIdentify"}},
		{"a pid comes again", machine, []string{"TestRecycledPid"}},
		{"attached and detached 10,000 times", machine, []string{"TestAttachAndDetach"}},
		{"the monitor is killed: breakpoints stand", machine, []string{"TestKilledMonitor", "TestLibraryCallsKilled", "TestStepsKilled"}},
		{"the monitor is killed: programs count in the kernel", kernel, []string{"TestMonitorsDeath"}},
		{"the monitor is killed: another one takes over", kernel, []string{"TestTakeOver", "TestOrphans", "TestKeptRowsOfManyThreads", "TestKilledWhileFolding", "TestExecWithoutAMonitor", "TestEndWithoutAMonitor", "TestTakeOverEvents"}},
		{"the monitor is killed, or its registrar, or both: uprobes are being set and taken out", kernel, []string{"TestKilledWhileSetting", "TestKilledRegistrar", "TestStoppedRegistrar", "TestMend"}},
		{"code in the program: the monitor is killed, and another comes", machine, []string{"TestPatchKilled", "TestPatchKilledThenClean", "TestPatchLeft", "TestPatchLeftPartly", "TestPatchOneMonitor"}},
		{"code in the program: under load, everywhere, in children", machine, []string{"TestPatchUnderLoad", "TestPatchStorm", "TestPatchShapes", "TestPatchEverything", "TestPatchFamily"}},
		{"the monitor is killed: threads stopped, suspended", machine, []string{"TestStoppedKilled"}},
		{"the warden is killed, stopped, or killed with the monitor", machine, []string{"TestKilledWarden", "TestStoppedWarden", "TestLeftovers", "TestOthersTrapsLater"}},
		{"the gateway is killed", gateway, []string{"TestTargetsOutliveTheGateway", "TestProbeOfTheDead"}},
		{"the gateway is killed and started again", gateway, []string{"TestGatewayComesBack", "TestCountsOutliveTheGateway", "TestCountsWhereABreakpointStood", "TestDoctorCleansUp", "TestDoctorMends"}},
		{"the gateway is killed while it delivers, to a file and to a server that is away", gateway, []string{"TestDeliveredThroughKills", "TestExecutionsThroughKills"}},
		{"requests that would stop the monitor itself", machine, []string{"TestSparesItself"}},
	}
}
