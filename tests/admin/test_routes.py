"""Admin routes: only with the key, live figures, nothing secret in them."""

import json
from pathlib import Path

import pytest
from stack import ADMIN_KEY, ENDPOINT_KEY, running_stack

pytestmark = pytest.mark.anyio

PAGES = ("engines", "models", "policies", "budgets", "decisions", "requests/none")


async def test_nothing_is_shown_without_the_key_and_nothing_secret_with_it(tmp_path: Path) -> None:
    async with running_stack(tmp_path) as stack:
        await stack.ready()
        answered = await stack.chat(headers={"x-spillgate-overflow": "only"})
        assert answered.status_code == 200
        for page in PAGES:
            for wrong in (
                "",
                ADMIN_KEY,
                f"Bearer {ADMIN_KEY}x",
                "Bearer",
                f"Basic {ADMIN_KEY}",
                "Bearer \xe9",
            ):
                headers = {"authorization": wrong.encode("latin-1")} if wrong else {}
                refused = await stack.client.get(f"/admin/v1/{page}", headers=headers)
                assert (page, wrong, refused.status_code) == (page, wrong, 401)
                assert set(refused.json()["error"]) == {"message", "type", "param", "code"}
            shown = await stack.client.get(
                f"/admin/v1/{page}", headers={"authorization": f"Bearer {ADMIN_KEY}"}
            )
            assert shown.status_code == (404 if page == "requests/none" else 200)
            assert ADMIN_KEY not in shown.text
            assert ENDPOINT_KEY not in shown.text
            assert json.loads(shown.text)


async def test_figures_are_those_of_now(tmp_path: Path) -> None:
    admin = {"authorization": f"Bearer {ADMIN_KEY}"}
    async with running_stack(tmp_path) as stack:
        await stack.ready()
        answered = [await stack.chat(headers={"x-spillgate-overflow": "only"}) for _ in range(3)]
        [engine] = (await stack.client.get("/admin/v1/engines", headers=admin)).json()
        assert (engine["name"], engine["state"], engine["in_flight"]) == ("a", "ready", 0)
        assert engine["signal_age_seconds"] < 5
        [budget] = (await stack.client.get("/admin/v1/budgets", headers=admin)).json()
        spent = sum(float(a.headers["x-spillgate-cost"]) for a in answered)
        assert float(budget["spent_usd"]["hour"]) == pytest.approx(spent)
        assert budget["left_usd"] is None
        newest = (await stack.client.get("/admin/v1/decisions?limit=2", headers=admin)).json()
        assert [d["request_id"] for d in newest] == [a.headers["x-request-id"] for a in answered[:0:-1]]
        assert newest[0]["reason"] == "pinned"
        for limit in ("0", "257", "x"):
            bad = await stack.client.get(f"/admin/v1/decisions?limit={limit}", headers=admin)
            assert bad.status_code == 400
