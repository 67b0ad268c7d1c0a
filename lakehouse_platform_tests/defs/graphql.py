"""The questions that the tests ask Dagster's GraphQL, and the answers they want."""

from typing import Any

JsonObject = dict[str, Any]

CATALOG = """
query { assetNodes { assetKey { path } groupName kinds isMaterializable hasAssetChecks
  owners { ... on TeamAssetOwner { team } } freshnessPolicy { __typename } } }
"""
AUTOMATION = """
query { repositoriesOrError { ... on RepositoryConnection { nodes {
  jobs { name description isAssetJob }
  schedules { name cronSchedule executionTimezone scheduleState { status } }
  sensors { name sensorState { status } } } } } }
"""
RUN_CONFIG = """
query Config($selector: PipelineSelector!) { runConfigSchemaOrError(selector: $selector) {
  ... on RunConfigSchema { rootDefaultYaml } } }
"""
LAUNCH = """
mutation Launch($params: ExecutionParams!) { launchRun(executionParams: $params) {
  __typename
  ... on LaunchRunSuccess { run { runId } }
  ... on PythonError { message }
  ... on RunConfigValidationInvalid { errors { message } } } }
"""
RUN = """
query Run($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }
"""
ASSET = """
query Asset($key: AssetKeyInput!) { assetOrError(assetKey: $key) { ... on Asset {
  assetMaterializations(limit: 1) { metadataEntries { label __typename
    ... on IntMetadataEntry { intValue } ... on MarkdownMetadataEntry { mdStr } } } } } }
"""

_REPOSITORY = {"repositoryName": "__repository__", "repositoryLocationName": "lakehouse_platform"}


def job_selector(job: str) -> JsonObject:
    """Name a job of our code location."""
    return {"pipelineName": job, **_REPOSITORY}


def launch_variables(job: str) -> JsonObject:
    """Launch a job of our code location with its defaults."""
    return {"params": {"selector": {"jobName": job, **_REPOSITORY}, "runConfigData": {}, "mode": "default"}}
