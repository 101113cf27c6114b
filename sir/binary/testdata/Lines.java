import com.sun.jdi.AbsentInformationException;
import com.sun.jdi.Bootstrap;
import com.sun.jdi.Location;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.event.BreakpointEvent;
import com.sun.jdi.event.ClassPrepareEvent;
import com.sun.jdi.event.Event;
import com.sun.jdi.event.EventSet;
import com.sun.jdi.event.VMDisconnectEvent;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;

/** Prints how often the lines of a program are executed: a debugger stops where each of them begins. */
class Lines {
    public static void main(String[] args) throws Exception {
        var connector = Bootstrap.virtualMachineManager().defaultConnector();
        var options = connector.defaultArguments();
        options.get("main").setValue(args[0]);
        options.get("options").setValue("-cp " + args[1]);
        VirtualMachine vm = connector.launch(options);
        var prepared = vm.eventRequestManager().createClassPrepareRequest();
        prepared.addClassFilter(args[0] + "*");
        prepared.enable();
        var counts = new TreeMap<Integer, Integer>();
        while (true) {
            EventSet events = vm.eventQueue().remove();
            for (Event e : events) {
                if (e instanceof VMDisconnectEvent) {
                    counts.forEach((line, n) -> System.out.println(line + " " + n));
                    return;
                } else if (e instanceof BreakpointEvent b) {
                    counts.merge(b.location().lineNumber(), 1, Integer::sum);
                } else if (e instanceof ClassPrepareEvent p) {
                    Set<String> seen = new HashSet<>();
                    for (Location at : lines(p.referenceType()))
                        if (seen.add(at.method().name() + at.method().signature() + at.lineNumber()))
                            vm.eventRequestManager().createBreakpointRequest(at).enable();
                }
            }
            events.resume();
        }
    }

    /** Classes that the machine makes for lambdas have no lines. */
    static List<Location> lines(ReferenceType type) {
        try {
            return type.allLineLocations();
        } catch (AbsentInformationException e) {
            return List.of();
        }
    }
}
