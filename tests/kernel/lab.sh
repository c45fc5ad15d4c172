# The lab with the kernel's WireGuard and the kernel's delay (netem): its road works, and its fault is found.
# options: --seconds 900 --memory 3072
set -u
failed=0
check() {
    local what=$1
    shift
    if "$@"; then echo "ok $what"; else
        echo "FAILED $what"
        failed=1
    fi
}
# The named field's value in JSON, the first of its name.
value() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",]*\).*/\1/p" "$2" | head -n 1; }

up() { wirespeed lab up "$1" --name "$2" --json >"$OUT/$2.json"; }
doctor() {
    ip netns exec "ws-$1-client" wirespeed doctor "wg${1}0" --far "netns:ws-$1-server" --quick --json >"$OUT/$1-doctor.json" 2>"$OUT/$1-doctor.log"
    echo "doctor: exit $?, verdict $(value verdict "$OUT/$1-doctor.json"), codes: $(sed -n 's/.*"code": "\([^"]*\)".*/\1/p' "$OUT/$1-doctor.json" | tr '\n' ' ')"
}

check "a lab comes up" up healthy one
check "its tunnel is the kernel's" [ "$(value implementation "$OUT/one.json")" = kernel ]
check "its delay is netem" sh -c 'ip netns exec ws-one-road tc qdisc show | grep -q netem'
check "a ping goes through the tunnel" sh -c 'wirespeed lab exec --lab one client -- ping -c 3 -W 2 10.9.0.2'
check "the lab goes" wirespeed lab down one

check "a road with a fault" up mtu-exceeds-path two
doctor two
check "its fault is found" grep -q '"code": "mtu-exceeds-path"' "$OUT/two-doctor.json"
check "and it goes" wirespeed lab down two
exit "$failed"
